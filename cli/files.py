"""Files that a user names: input, output written whole or not at all, pages, and open handles.

``-`` is standard input. Owns the template of pages, and the escaping of stored text in them: a page
has no script and names no other file, and its policy forbids every load.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.engine.plain_value import PlainValue

from .visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from typing import IO, Final

    from cerata.memory.bisection import Bisection
    from cerata.memory.facts.changes import FactChange
    from cerata.memory.frames.audit import Audit
    from cerata.memory.frames.diff import Change, Diff
    from cerata.memory.values.text_diff import DiffLine

STREAM: Final = "-"


@contextmanager
def opened_input(name: str, remedy: str) -> Generator[tuple[IO[bytes], int]]:
    """Open a file; yield it and its size in bytes, 0 if unknown.

    Args:
        name: the file
        remedy: the advice if it does not exist

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not regular, or standard input is closed.
    """
    from cerata.memory.ingest.document import open_regular

    if name == STREAM:
        if sys.stdin is None:
            raise InvalidInput("Standard input is closed", remedy="Pass a file.")
        yield sys.stdin.buffer, 0
        return
    try:
        file = open_regular(Path(name))
    except FileNotFoundError as error:
        raise NotFound("The file does not exist", where=name, remedy=remedy) from error
    with file:
        yield file, os.fstat(file.fileno()).st_size


@contextmanager
def new_file(name: str, memory: str | None) -> Generator[IO[bytes]]:
    """Open a file that appears under its name when it is complete, and never replaces another file.

    Each file here has the mode of the memory at the path ``memory`` (`create_made_file`).

    Raises:
        Conflict: the name exists.
        NotFound: the folder of the name does not exist.
    """
    from cerata.memory.interchange.line_files import create_made_file

    check_new(name)
    path = Path(name)
    beside = _beside(path)
    try:
        with create_made_file(beside, memory) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError as error:
            raise _taken(name) from error
    finally:
        beside.unlink(missing_ok=True)


def check_new(name: str) -> None:
    """Raise `Conflict` if a name exists, and `NotFound` if its folder does not."""
    path = Path(name)
    if path.exists():
        raise _taken(name)
    if not path.parent.is_dir():
        raise NotFound(
            "The folder of the new file does not exist",
            where=name,
            remedy="Create the folder, or pass the name of a file in another.",
        )


def _taken(name: str) -> Conflict:
    return Conflict(f"{name} exists already", remedy="Pass the name of a new file.")


def write_picture(name: str, picture: bytes, memory: str | None) -> None:
    """Write a picture, and replace any file of that name.

    Raises:
        InvalidInput: the name is of a folder, pipe, socket or device.
    """
    from cerata.memory.interchange.line_files import create_made_file

    path = Path(name)
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{name} is not a regular file", remedy="Pass the name of a new file.")
    beside = _beside(path)
    try:
        # A new file beside it, so that no existing device or pipe is opened.
        with create_made_file(beside, memory) as file:
            file.write(picture)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_page(name: str, page: str, memory: str | None) -> None:
    """Write a page of HTML, and replace any file of that name; see `write_picture`."""
    write_picture(name, page.encode(), memory)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


_PROCESSES: Final = Path("/proc")
_COMMAND_SIZE: Final = 40


@dataclass(frozen=True, slots=True)
class Holder(PlainValue):
    """A process that has the file open."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def holders_of(path: str) -> list[Holder]:
    """Return the other processes with the file open, by number; none if the system lists none."""
    try:
        target = os.stat(path)
        processes = sorted(
            int(entry.name) for entry in _PROCESSES.iterdir() if entry.name.isdigit()
        )
    except OSError:
        return []
    this_process = os.getpid()
    return [
        Holder(pid, _command(pid))
        for pid in processes
        if pid != this_process
        and any(os.path.samestat(target, opened) for opened in _open_files(pid))
    ]


def _open_files(pid: int) -> Iterator[os.stat_result]:
    """Yield the open files of a process; none if it has ended or belongs to another user."""
    try:
        names = os.listdir(_PROCESSES / str(pid) / "fd")
    except OSError:
        return
    for name in names:
        try:
            yield os.stat(_PROCESSES / str(pid) / "fd" / name)
        except OSError:
            continue


def _command(pid: int) -> str:
    try:
        words = (_PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    line = " ".join(word.decode(errors="replace") for word in words if word)
    return line if len(line) <= _COMMAND_SIZE else line[: _COMMAND_SIZE - 1] + "…"


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
    from cerata.memory.frames.event_summary import act_of, describe
    from cerata.memory.values.acts import credit

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
    from cerata.memory.values.facts import plain_object

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
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = ()
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
