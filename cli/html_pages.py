"""Pages: a diff, a search for an event, or an audit as one file of HTML that needs nothing else.

Owns the template, the escaping of stored text, and the three pages. A page has no script and names
no other file: its policy forbids every load. Leaves out the writing of the file (`output_files`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from cerata.memory.frames.event_summary import act_of, describe
from cerata.memory.values.acts import credit
from cerata.memory.values.facts import plain_object

from .visible_text import visible

if TYPE_CHECKING:
    from cerata.memory.bisection import Bisection
    from cerata.memory.facts.changes import FactChange
    from cerata.memory.frames.audit import Audit
    from cerata.memory.frames.diff import Change, Diff
    from cerata.memory.values.text_diff import DiffLine

_STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fff; --faint: #5c5c66;
  --line: #d4d4dc; --new: #dff5e3; --new-word: #9fdcad; --old: #fde4e4; --old-word: #f3abab; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ee; --paper: #17171b; --faint: #a5a5b2;
  --line: #3a3a44; --new: #14321d; --new-word: #21683a; --old: #3d1a1c; --old-word: #8a2f35; } }
body { color: var(--ink); background: var(--paper); font: 1rem/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .3rem; }
p.note { color: var(--faint); margin: .2rem 0; }
ol.text { font-family: ui-monospace, monospace; list-style: none; margin: 0; padding: 0; }
ol.text li { overflow-wrap: anywhere; padding: 0 .4rem; white-space: pre-wrap; }
li.new, tr.new { background: var(--new); } li.old, tr.old { background: var(--old); }
ins, del { text-decoration: none; }
li.new ins { background: var(--new-word); } li.old del { background: var(--old-word); }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .4rem 0; width: 100%; }
caption { font-weight: 600; padding: .4rem 0; text-align: left; }
th, td { border-bottom: 1px solid var(--line); overflow-wrap: break-word; padding: .2rem .5rem;
  text-align: left; vertical-align: top; }
"""

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""

_CLASSES: Final = {"+": "new", "-": "old", " ": "same"}
_WORD_TAGS: Final = {"+": "ins", "-": "del", " ": "span"}
_FACT_SIGNS: Final = {"added": "+", "removed": "-", "changed": " "}


def safe(text: str) -> str:
    """Return a stored text for HTML: no markup, and no character that turns or hides text."""
    return escape(visible(text))


def diff_page(diff: Diff) -> str:
    """Return a page with every change of a diff."""
    return _page(f"Changes from event {diff.a:,} to event {diff.b:,}", _diff_parts(diff))


def bisect_page(result: Bisection, answers: Sequence[tuple[str, str]], diff: Diff) -> str:
    """Return a page with the first bad event, the probes, and the changes of its batch.

    Args:
        result: The search.
        answers: A label and a text for each answer, such as before and after the event.
        diff: The changes of the batch.
    """
    event = result.event
    parts = [_note(f"Batch {result.first} to {result.last}; the last good point is {result.good}.")]
    if event is not None:
        by = credit(event.actor, event.reason)
        act = act_of(event.type)
        parts.append(f"<p><strong>{safe(act)}</strong> {safe(describe(event))}</p>")
        parts.append(_note(by) if by else "")
    parts += [f"<h2>{safe(label)}</h2>\n<p>{safe(text)}</p>" for label, text in answers]
    rows = [(f"#{probe.basis}", probe.verdict) for probe in result.probes]
    parts.append(_table("Probes", ("point", "verdict"), rows))
    return _page(f"First bad event #{result.seq}", [*parts, *_diff_parts(diff)])


def audit_page(audit: Audit) -> str:
    """Return a page with the actors and the changes of an audit."""
    actors = [
        (who, ", ".join(f"{count:,} {act}" for act, count in acts.items()))
        for who, acts in audit.actors.items()
    ]
    entries = [
        (
            *(f"#{entry.seq}", f"{entry.recorded:%Y-%m-%d %H:%M:%S}", entry.who, entry.act),
            *(entry.summary, entry.reason or "", entry.request or ""),
        )
        for entry in audit.entries
    ]
    heads = ("event", "when (UTC)", "who", "act", "change", "reason", "request")
    parts = [
        _note(audit.summary),
        _table("Actors", ("who", "acts"), actors),
        _table("Changes", heads, entries),
    ]
    return _page(f"Audit up to event {audit.basis:,}", parts)


def _page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return _PAGE.format(title=safe(title), style=_STYLE, body=body)


def _note(text: str) -> str:
    return f'<p class="note">{safe(text)}</p>'


def _diff_parts(diff: Diff) -> list[str]:
    parts = [_note(diff.summary), *map(_change, diff)]
    if diff.facts:
        parts.append(_facts(diff.facts))
    if diff.results:
        rows = [
            (f"#{each.id}", each.kind, f"{each.old_rank or '–'} → {each.new_rank or '–'}", each.why)
            for each in diff.results
        ]
        parts.append(_table("Results", ("frame", "change", "rank", "why"), rows))
    return parts


def _change(change: Change) -> str:
    lines = "\n".join(map(_line, change.lines))
    text = f'\n<ol class="text">\n{lines}\n</ol>' if lines else ""
    return f"<section>\n<h2>{safe(change.title)}</h2>{text}\n</section>"


def _line(line: DiffLine) -> str:
    tag = _WORD_TAGS[line.sign]
    text = "".join(
        f"<{tag}>{safe(part)}</{tag}>" if is_changed else safe(part)
        for part, is_changed in line.parts()
    )
    # The sign is text, so that the colour is not the only mark.
    return f'<li class="{_CLASSES[line.sign]}">{line.sign} {text}</li>'


def _facts(changes: Sequence[FactChange]) -> str:
    rows: list[tuple[str, ...]] = []
    signs: list[str] = []
    for change in changes:
        fact = change.fact
        sign = _FACT_SIGNS[change.kind]
        signs.append(_CLASSES[sign])
        rows.append(
            (
                *(f"{sign} #{fact.id}", change.verb, fact.subject, fact.predicate),
                *(str(plain_object(fact.object)), str(fact.valid)),
            )
        )
    heads = ("fact", "change", "subject", "predicate", "object", "valid")
    return _table("Facts", heads, rows, signs)


def _table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    classes: Sequence[str] = (),
) -> str:
    head = "".join(f'<th scope="col">{safe(text)}</th>' for text in heads)
    lines: list[str] = []
    for place, row in enumerate(rows):
        first, *cells = row
        kind = f' class="{classes[place]}"' if classes else ""
        data = "".join(f"<td>{safe(cell)}</td>" for cell in cells)
        lines.append(f'<tr{kind}><th scope="row">{safe(first)}</th>{data}</tr>')
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table>\n<caption>{safe(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )
