"""The verb that explains recorded recalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput
from cerata.engine.verbs import AT, Arg, Verb, identifier

from .options import reading, view_of

if TYPE_CHECKING:
    from argparse import Namespace

    from .output import Output

VERBS: Final = (
    Verb(
        "explain",
        "time",
        "print what a recorded recall showed and why, and what it would show today",
        "cerata.cli.explain:run_explain",
        (
            Arg("seq", "seq of the recall: log --type recall", "?", type=identifier, metavar="SEQ"),
            AT,
        ),
        ("41", "'#41' --at HEAD~3 --json"),
        page="time-travel.md#recalls",
    ),
)

_RECALLS: Final = "Pass its seq; 'cerata log --type recall' lists the recalls."
_STYLES = {"=": "", "-": "red", "+": "green", "?": "yellow"}


def run_explain(options: Namespace, output: Output) -> int:
    """Print each line that a recall showed, its reason, and the line of today."""
    if options.seq is None:
        raise InvalidInput("explain needs the seq of a recall", remedy=_RECALLS)
    with reading(options) as store:
        seq: int = options.seq
        explanation = view_of(store, options).history.explain(seq)
    head, recorded, *lines = str(explanation).splitlines()
    with output.pages():
        output.row((head, "bold"))
        output.row((recorded, "dim"))
        for line in lines[:-1]:
            output.row((line, "dim" if line.startswith(" ") else _STYLES.get(line[:1], "")))
        output.line(lines[-1], style="dim")
    output.result({**explanation.to_dict(), "summary": explanation.summary})
    return 0
