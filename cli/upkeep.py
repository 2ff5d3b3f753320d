"""The verbs about the file itself: info and verify, and the command without a verb."""

from argparse import Namespace

from rich.text import Text

import cerata
from cerata.engine.errors import NotFound
from cerata.engine.events import JsonValue

from .opening import file_of, reading
from .output import Output


def run_welcome(options: Namespace, output: Output) -> int:
    """Print what this is, which file, and what to type next."""
    what = "the memory of AI agents, in one file"
    nexts = (
        "cerata tour",
        "cerata remember notes.md && cerata recall 'what did we decide?'",
        "cerata --help",
    )
    file: str | None = None
    try:
        shown = file = file_of(options)
    except NotFound as error:
        shown = f"{error.what.lower()}; name one with -f FILE"
    output.line(f"Cerata: {what}.", style="bold")
    for name, value in zip(("File:", "Try:", "Then:", "Help:"), (shown, *nexts), strict=True):
        output.line(f"{name:<7} {value}")
    output.result(
        {"cerata": cerata.__version__, "what": what, "file": file, "next": list[JsonValue](nexts)}
    )
    return 0


def run_info(options: Namespace, output: Output) -> int:
    """Print what is in the file and where it stands."""
    with reading(options) as store:
        facts = store.info(options.at)
    for name, value in facts.items():
        output.line(Text.assemble((f"{name.replace('_', ' '):<18} ", "dim"), _shown(value)))
    output.result(facts)
    return 0


def _shown(value: JsonValue) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value) or "none"
    return str(value)


def run_verify(options: Namespace, output: Output) -> int:
    """Verify the file, and say what is damaged."""
    with (
        reading(options) as store,
        output.progress("verifying", store.head.seq) as steps,
    ):
        found = store.verify(steps.stand)
    for problem in found.log.problems:
        output.line(Text.assemble(("damaged: ", "bold red"), str(problem)))
    for divergence in found.divergences:
        output.line(Text.assemble(("diverges: ", "bold red"), str(divergence)))
    for note in found.notes:
        output.line(Text.assemble(("rebuilt: ", "yellow"), note))
    if found.ok:
        names = ", ".join(sorted(found.digests))
        output.line(
            Text.assemble(
                ("ok: ", "bold green"),
                f"{found.log.events:,} events, every hash recomputed; {names} equal their replay",
            )
        )
    output.result(found.to_dict())
    return 0 if found.ok else 1
