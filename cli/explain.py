"""The verb that explains a recorded recall beside the answer of today: explain."""

from argparse import Namespace

from .output import Output
from .store_options import reading, view_of

_STYLES = {"=": "", "-": "red", "+": "green", "?": "yellow"}


def run_explain(options: Namespace, output: Output) -> int:
    """Print each line that a recall showed, its reason, and the line of today."""
    with reading(options) as store:
        seq: int = options.seq
        explanation = view_of(store, options).explain(seq)
    head, recorded, *lines = str(explanation).splitlines()
    with output.pages():
        output.row((head, "bold"))
        output.row((recorded, "dim"))
        for line in lines[:-1]:
            output.row((line, "dim" if line.startswith(" ") else _STYLES.get(line[:1], "")))
        output.line(lines[-1], style="dim")
    output.result({**explanation.to_dict(), "summary": explanation.summary})
    return 0
