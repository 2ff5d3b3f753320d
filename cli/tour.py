"""The tour: the main promises, shown on real documents in under a minute.

The tour remembers documents, asks, kills a writing child, reopens, shows that nothing acknowledged
is missing, corrects a frame and asks again as of before, and rebuilds every index from the log.
Each step checks its promise; a broken promise is printed, and the tour exits with 1. The
tour leaves no file behind unless ``-f`` names one. Run as a module, this is the child to be killed.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.late import late
from cerata.engine.verbs import Arg, Verb

from .search import excerpt

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from rich.text import Text

    from cerata.engine.events import JsonValue
    from cerata.memory import store as memory_store
    from cerata.memory.store import Store
    from cerata.memory.values.frames import Frame
    from cerata.projections.frames import filters

    from .output import Output
else:
    memory_store = late("cerata.memory.store")
    filters = late("cerata.projections.frames.filters")

VERBS: Final = (
    Verb(
        "tour",
        "admin",
        "demonstrate: remember, ask, kill, correct, rebuild",
        "cerata.cli.tour:run_tour",
        (Arg("paths", "your files (Cerata's documentation)", "*", type=Path, metavar="PATH"),),
        ("", "~/notes --json | jq .holds"),
        scoped=False,
    ),
)

QUESTION: Final = "What happens to a torn tail after a crash?"
_ACKNOWLEDGED_BEFORE_KILL: Final = 200
_KILL_SECONDS_MAX: Final = 20.0
_MEETING: Final = "The team meets on Tuesday at ten."
_MOVED: Final = "The team meets on Thursday at nine."

_KEPT: Final = "tour.cera"
"""The suggested name of a kept file; `store_options` does not count it as a memory."""

_ITEMS_PRINTED: Final = 3

_LINES: Final = 4
"""Entries of a context that the tour prints."""

_TEAM_QUESTION: Final = "When does the team meet?"


def run_tour(options: Namespace, output: Output) -> int:
    """Show the promises on the given paths or on Cerata's documentation."""
    from tempfile import TemporaryDirectory

    started = time.monotonic()
    if options.file == ":memory:":
        raise InvalidInput(
            "The tour needs a file on disk, since it kills a process that writes to it",
            remedy="Name a new file: cerata admin tour -f NEW.cera.",
        )
    with TemporaryDirectory(prefix="cerata-tour-") as folder:
        file = options.file or str(Path(folder) / _KEPT)
        return _run_steps(file, options, output, started)


def _run_steps(file: str, options: Namespace, output: Output, started: float) -> int:
    import shlex

    from cerata.engine.events import JsonValue

    result: dict[str, JsonValue] = {"file": options.file}
    steps = (_remember, _ask, _kill, _correct, _rebuild)
    holds = True
    for number, step in enumerate(steps, start=1):
        output.line(f"\n{number}. {(step.__doc__ or '').splitlines()[0]}", style="bold cyan")
        answer = step(file, options.paths, output)
        result[step.__name__.strip("_")] = answer
        holds = holds and answer["holds"] is True
    seconds = time.monotonic() - started
    result |= {"holds": holds, "seconds": round(seconds, 1)}
    verdict = "Every step held" if holds else "A step did not hold"
    kept = f"The file is {file}. Now" if options.file else "The file was removed. To keep one,"
    output.line(f"\n{verdict}, in {seconds:.1f} s. {kept} type:", style="bold")
    question_step = result["ask"]
    assert isinstance(question_step, dict)
    name = options.file or _KEPT
    commands = [
        f"cerata log -f {name}",
        f"cerata recall -f {name} {shlex.quote(str(question_step['question']))}",
        f"cerata time diff -f {name} HEAD~2",
    ]
    if not options.file:
        commands[2:] = []
        commands.insert(
            0, shlex.join(["cerata", "admin", "tour", "-f", name, *map(str, options.paths)])
        )
    for command in commands:
        output.line(f"    {command}")
    output.result({**result, "next": list[JsonValue](commands)})
    return 0 if holds else 1


def _remember(file: str, paths: Sequence[Path], output: Output) -> dict[str, JsonValue]:
    """Remember documents."""
    import importlib.resources

    from cerata.engine.words import counted
    from cerata.memory.ingest.discovery import find_files

    sources = list(paths) or [Path(str(importlib.resources.files("cerata") / "docs"))]
    total = len(find_files(sources).files)
    started = time.monotonic()
    with memory_store.open_store(file) as store, output.progress("remembering", total) as steps:
        remembered = store.files.remember(sources, report=lambda _file, _at, _total: steps.done())
    took = time.monotonic() - started
    for skipped in remembered.of("skipped"):
        output.warn(f"skipped {skipped.path}: {skipped.why}")
    for path, flaw in ((file.path, flaw) for file in remembered.files for flaw in file.flaws):
        if not flaw.is_usual:
            output.warn(f"{path}: {flaw}")
    files = len(remembered.of("added"))
    output.line(
        f"   {counted(files, 'file')} became {counted(remembered.frames, 'frame')} "
        f"in {took:.2f} s, each durable before the next."
    )
    return {"holds": files > 0, "files": files, "frames": remembered.frames}


def _ask(file: str, paths: Sequence[Path], output: Output) -> dict[str, JsonValue]:
    """Ask a question, and print the context for a model, with its sources."""
    with memory_store.open_store(file, mode="r") as store:
        question = _question(store, paths)
        context = store.recall(question, max_tokens=1200)
        excerpts = [_excerpt(store, item.text, question) for item in context.items[:_ITEMS_PRINTED]]
    output.line(f"   {question}")
    for item, lines in zip(context.items, excerpts, strict=False):
        output.row(("[" + item.source + "]", "dim"), indent=3)
        output.paragraph(lines, indent=3, lines=_LINES)
    if len(context.items) > _ITEMS_PRINTED:
        output.line(f"   … and {len(context.items) - _ITEMS_PRINTED} more", style="dim")
    output.line(f"   {context.summary}", style="dim")
    return {
        # A user's title may match nothing; the built-in question has an answer.
        "holds": bool(context.items) and (bool(paths) or not context.fallback),
        "question": question,
        "shown": len(context.items),
        "tokens": context.tokens,
    }


def _excerpt(store: Store, text: str, question: str) -> Text:
    """Return the lines of an entry that answer the question best."""
    from cerata.retrieval.context.extracts import best_span
    from cerata.retrieval.tables import find_tables

    marks = store.files.highlights(text, question)
    lines = excerpt(text, best_span(text, marks, find_tables(text)), marks, lines=_LINES)
    lines.style = "green"
    return lines


def _question(store: Store, paths: Sequence[Path]) -> str:
    """Return the built-in question, or one about a heading of a user's document."""
    return (question_about(store) if paths else None) or QUESTION


def _kill(file: str, _paths: Sequence[Path], output: Output) -> dict[str, JsonValue]:
    """Kill a process while it writes, and look for its acknowledged writes."""
    from cerata.engine.events import PutFrame

    acknowledged = _write_until_killed(file)
    with memory_store.open_store(file) as store:
        written = {
            event.body.text: event.seq
            for event in store.log(first=1)
            if isinstance(event.body, PutFrame) and event.body.kind == "tour"
        }
        report = store.report
    missing = [text for text in acknowledged if text not in written]
    output.line(
        f"   Killed (SIGKILL) after {len(acknowledged):,} acknowledged writes: "
        f"{len(missing)} missing."
    )
    output.line(
        f"   Reopened without repair: {report.sealed_events:,} events were in the ring, "
        f"{report.cut_bytes:,} torn bytes cut.",
        style="dim",
    )
    return {
        "holds": not missing and bool(acknowledged),
        "acknowledged": len(acknowledged),
        "missing": len(missing),
        "written_unacknowledged": len(written) - len(acknowledged) + len(missing),
    }


def _write_until_killed(file: str) -> list[str]:
    """Let a child write, kill it at some instant, and return its acknowledged texts."""
    import subprocess

    command = [sys.executable, "-P", "-m", "cerata.cli.tour", file]
    acknowledged: list[str] = []
    # The child imports the same Cerata as this process, installed or not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        deadline = time.monotonic() + _KILL_SECONDS_MAX
        for line in child.stdout:
            acknowledged.append(line.rstrip("\n"))
            if len(acknowledged) >= _ACKNOWLEDGED_BEFORE_KILL or time.monotonic() > deadline:
                child.kill()
                break
        # Lines that the child printed before the kill, but that are not read yet, count too.
        rest = child.stdout.read()
        acknowledged += [line for line in rest.split("\n")[:-1] if line]
    return acknowledged


def _correct(file: str, _paths: Sequence[Path], output: Output) -> dict[str, JsonValue]:
    """Correct a frame, and ask again as of before."""
    with memory_store.open_store(file) as store:
        old = store.remember(_MEETING, tags=["tour"])
        store.supersede(old, _MOVED)
        # A user's documents may mention meetings, too.
        ours = filters.Filter(tags=["tour"])
        now = store.search(_TEAM_QUESTION, k=1, where=ours)[0].text
        before = store.at(old).search(_TEAM_QUESTION, k=1, where=ours)[0].text
        basis = 0 if old.head is None else old.head.seq
    output.line(f"   {_TEAM_QUESTION}")
    output.line(f"   now:              {now}", style="green")
    output.line(f"   at event {basis:>6,}:  {before}", style="green")
    return {"holds": now == _MOVED and before == _MEETING, "now": now, "before": before}


def _rebuild(file: str, _paths: Sequence[Path], output: Output) -> dict[str, JsonValue]:
    """Drop every index, rebuild it from the log, and compare."""
    with memory_store.open_store(file) as store:
        store.checkpoint()
    with memory_store.open_store(file, mode="r") as store:
        saved, replayed = _digests(store)
    equal = saved == replayed
    for name, digest in sorted(replayed.items()):
        mark = "equal" if saved.get(name) == digest else "DIFFERENT"
        output.line(
            f"   {name:<10} {digest.hex()[:32]}…  {mark}", style="green" if equal else "red"
        )
    return {
        "holds": equal and bool(replayed),
        "digests": {name: digest.hex() for name, digest in sorted(replayed.items())},
    }


def _digests(store: Store) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the digests of checkpoint plus tail, and those of a replay of the whole log."""
    return store.stream.digests(), store.stream.digests(replay=True)


_FRAMES_MAX: Final = 2_000

_TERMS: Final = range(2, 6)
"""Words of a good heading: one word is vague, and a sentence is no subject."""

_SIZE_MAX: Final = 60

_PROSE: Final = ("", ".md", ".markdown", ".txt", ".rst", ".html", ".htm", ".pdf")
"""Suffixes of files whose headings are not definitions of code."""

_GENERIC_HEADINGS: Final = (
    "about abstract acknowledgements api appendix args arguments attributes authors background"
    " badge basic basics build bugs change changelog changes class code com command conclusion"
    " config configuration contact contents contribute contributing copyright credits demo"
    " dependencies description details development docs documentation download entry example"
    " examples faq features file files function getting guide help helpers history home index"
    " init install installation installing introduction intro issues layout legal license"
    " licence links list main methods misc module name news note notes notice options other"
    " overview parameters part parts plan project purpose questions quick quickstart raises"
    " readme reference references related release releases requirements resources return returns"
    " run running section see settings setup start started status structure summary support"
    " synopsis table test testing tests text title todo topics tutorial unreleased untitled"
    " update updates usage use using utils version versions what why"
)


@cache
def _generic_terms() -> frozenset[str]:
    from cerata.projections.fulltext.analyzer import terms

    return frozenset(term for word in _GENERIC_HEADINGS.split() for term in terms(word))


def question_about(store: Store) -> str | None:
    """Return a question about a heading, definition or name among the newest frames, if any."""
    from cerata.projections.fulltext.analyzer import terms

    best: str | None = None
    best_rank = (0, 0, 0)
    for frame in islice(store.frames(include_chunks=True), _FRAMES_MAX):
        subject = _subject(frame)
        size = len(set(terms(subject)) - _generic_terms())
        file = PurePath(frame.uri or "")
        is_heading = not file.as_posix().endswith(subject)
        is_code = is_heading and file.suffix.lower() not in _PROSE
        rank = ((is_heading and not is_code) + is_heading, int(size in _TERMS), frame.size)
        if size and rank > best_rank:
            best_rank = rank
            best = f"What do the files say about {subject}?"
            if not is_heading:
                best = f"What is in {subject}?"
            elif is_code:
                best = f"What does {subject} do?"
    return best


def _subject(frame: Frame) -> str:
    """Return the last heading above a frame, or its title; "" without any, or with a long one."""
    is_document = frame.chunk_count is not None and frame.chunk_index is None
    name = "" if is_document else (frame.title or "").rpartition(" > ")[2]
    if PurePath(frame.uri or "").suffix.lower() not in _PROSE:
        # Small definitions in a row share a heading.
        name = name.partition(", ")[0]
    name = name.strip(' .:?!`*"')
    return name if len(name) <= _SIZE_MAX else ""


def _write_frames() -> None:
    """Write frames into the file named on the command line, and print each once it is durable."""
    with memory_store.open_store(sys.argv[1]) as store:
        for number in range(1_000_000):
            text = f"Note {number} of a writer that will be killed."
            store.put_frame(text, kind="tour")
            # put_frame has returned, so the frame is on disk: acknowledge it only now.
            print(text, flush=True)


if __name__ == "__main__":
    _write_frames()
