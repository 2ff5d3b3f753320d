"""Retrieval quality of a judged set: recall, nDCG, evidence inside contexts, time.

    python -m benchmarks.retrieval locomo FILE        # LoCoMo: two people over months
    python -m benchmarks.retrieval friendsqa FILE     # FriendsQA in LoCoMo's form
    python -m benchmarks.retrieval qmsum FILE         # QMSum in LoCoMo's form
    python -m benchmarks.retrieval cranfield FOLDER   # abstracts, with queries and judgements
    python -m benchmarks.retrieval judged FILE        # any judged file, as JSON lines (`jsonl`)
    python -m benchmarks.retrieval synthetic          # a small generated set

``--embedder minilm`` adds a vector for each text, ``minilm-tokens`` also a vector for each token;
both need the extra ``minilm`` and are cached in the folder of ``--cache``. ``--ablate`` leaves out
each lane and signal in turn. ``--save`` keeps the scores of each question, and ``--against``
compares them with this run by a paired bootstrap.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from cerata import CerataError, InvalidInput
from cerata.retrieval.embedders.built_in import built_in

from . import conversations, cranfield, jsonl, run_file
from .embedding_cache import CachedEmbedder
from .ingest import SESSION_STYLES, SPEAKER_STYLES, Style
from .judged_set import JudgedSet
from .measurement import CONTEXTS, Settings, measure
from .report import Report
from .synthetic import synthetic_set

EMBEDDERS: Final = ("none", "minilm", "minilm-tokens")

LOADERS: Final[dict[str, Callable[[Path], JudgedSet]]] = {
    "locomo": partial(
        conversations.load,
        name="locomo",
        categories=conversations.LOCOMO_CATEGORIES,
        tolerant=True,
    ),
    "friendsqa": partial(conversations.load, name="friendsqa"),
    "qmsum": partial(conversations.load, name="qmsum"),
    "cranfield": cranfield.load,
    "judged": jsonl.load,
}
"""The loader of each set with a path."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        report = run(options)
    except CerataError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    if options.json:
        print(json.dumps(report.to_dict(), indent=1))
    else:
        for line in report.lines():
            print(line)
    return 0


def run(options: argparse.Namespace) -> Report:
    """Measure the set of the options, and save the run if they name a file.

    Raises:
        CerataError: a file cannot be read, or an option has no such value.
    """
    judged = synthetic_set() if options.set == "synthetic" else LOADERS[options.set](options.path)
    against = None if options.against is None else _earlier(options.against, judged)
    settings = Settings(
        profile=options.profile,
        without=tuple(name for names in options.without for name in names.split(",")),
        ablate=options.ablate,
        contexts=tuple(options.contexts),
        style=Style(options.speaker, options.session),
    )
    embedder = None if options.embedder == "none" else _embedder(options)
    try:
        if embedder is not None:
            _warm(embedder, judged, settings.style)
        measurement = measure(judged, settings, embedder, _progress)
    finally:
        if embedder is not None:
            embedder.close()
    report = Report(judged, settings, options.embedder, measurement, against)
    if options.save is not None:
        run_file.save(report.saved, options.save)
    return report


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


def _embedder(options: argparse.Namespace) -> CachedEmbedder:
    return CachedEmbedder(built_in(options.embedder), options.cache)


def _warm(embedder: CachedEmbedder, judged: JudgedSet, style: Style) -> None:
    """Embed all texts and questions that the cache lacks."""
    texts = [style.text(document) for corpus in judged.corpora for document in corpus.documents]
    texts += [question.text for question in judged.questions]

    def progress(count: int, total: int) -> None:
        if count % 1_024 == 0 or count == total:
            _progress(f"{count:,} of {total:,} texts embedded")

    embedder.warm(texts, progress)


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _default_cache() -> Path:
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
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--embedder", choices=EMBEDDERS, default="none", help="default none")
    parser.add_argument(
        "--cache",
        type=Path,
        default=_default_cache(),
        help="the folder of cached embeddings; default a temporary folder",
    )
    parser.add_argument("--profile", help="a profile by name; default that of the store")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="PART",
        help="leave out a lane or signal of the profile; repeat it, or separate by commas",
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
    parser.add_argument(
        "--contexts",
        type=_budgets,
        default=CONTEXTS,
        metavar="TOKENS",
        help="budgets of contexts, separated by commas; default 500,1000,2000; 0 for none",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the scores of the run")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with a kept run")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _budgets(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"budgets must be numbers of tokens, not {text!r}")
    return [tokens for tokens in map(int, parts) if tokens > 0]
