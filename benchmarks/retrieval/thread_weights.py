"""The weight of the signal ``thread``: its gain in the right conversation, its loss in another.

    python -m benchmarks.retrieval.thread_weights locomo FILE
    python -m benchmarks.retrieval.thread_weights friendsqa FILE --embedder minilm-tokens

``thread`` raises turns of the conversation of the newest turn. So each question is asked twice, by
the public API: as of the end of the session with its answer, if in several the latest ("own"), and
as of the end of the next session ("next"), whose turns are then raised for nothing. Both states
have all answers, and differ by a single session. Questions about the last session are left out.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import cerata
from cerata import Profile, View

from .command import EMBEDDERS, LOADERS, default_cache, embedding
from .development import PLAIN
from .embedding_cache import CachedEmbedder
from .guard import GUARDED
from .ingest import StoredCorpus, Style, ingest
from .judged_set import Corpus, JudgedSet, Question
from .measurement import profile_in_use
from .metrics import turn_scores
from .report import percent, table
from .switches import with_signals
from .synthetic import synthetic_set

WEIGHTS: Final = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
HITS: Final = 20


class Asked(NamedTuple):
    """The mean scores of a weight (`GUARDED`), in the own and in the next session."""

    weight: float
    own: tuple[float, ...]
    next: tuple[float, ...]


def thread_weights(
    judged: JudgedSet,
    weights: Sequence[float] = WEIGHTS,
    profile: str | None = None,
    embedder: Any = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[int, list[Asked]]:
    """Return the number of questions, and the scores of each weight.

    Args:
        judged: conversations in sessions
        weights: weights of ``thread``
        profile: the profile that the weight is added to; default that of the first store
        embedder: the embedder of each store; default none
        progress: called with a line for each corpus; default none
    """
    profiles: list[Profile] = []
    scores: list[tuple[list[list[float]], list[list[float]]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for place, corpus in enumerate(judged.corpora):
            progress(f"{judged.name} {place + 1} of {len(judged.corpora)}: {corpus.name}")
            if isinstance(embedder, CachedEmbedder):
                embedder.load([document.text for document in corpus.documents])
            stored = ingest(corpus, Path(folder) / f"{place}.cera", Style(), embedder)
            with cerata.open(stored.path, mode="r", embedder=embedder) as store:
                if not profiles:
                    in_use = profile_in_use(store.at("HEAD"), corpus, profile)
                    profiles = [with_signals(in_use, {"thread": weight}) for weight in weights]
                for question, own, following in _questions(store, corpus, stored):
                    scores.append(
                        (
                            [_scores(own, question, stored, each) for each in profiles],
                            [_scores(following, question, stored, each) for each in profiles],
                        )
                    )
    asked = [
        Asked(
            weight,
            _means([own[place] for own, _ in scores]),
            _means([following[place] for _, following in scores]),
        )
        for place, weight in enumerate(weights)
    ]
    return len(scores), asked


def _questions(
    store: cerata.Store, corpus: Corpus, stored: StoredCorpus
) -> Iterator[tuple[Question, View, View]]:
    """Yield each question with the states at the end of its session, and of the next."""
    sessions = corpus.sessions
    times = {document.parent: document.time for document in corpus.documents}
    last_turns: dict[str, int] = {}
    for frame, document in stored.documents.items():
        session = sessions[document]
        last_turns[session] = max(frame, last_turns.get(session, 0))
    order = [*dict.fromkeys(sessions.values())]
    views = [store.at(last_turns[session], now=times[session]) for session in order]
    for question in corpus.questions:
        place = max(order.index(sessions[document]) for document in question.relevant)
        if place + 1 < len(order):
            yield question, views[place], views[place + 1]


def _scores(view: View, question: Question, stored: StoredCorpus, profile: Profile) -> list[float]:
    hits = view.search(question.text, k=HITS, profile=profile, page=cerata.Page(group_by="frame"))
    scores = turn_scores([stored.documents[hit.id] for hit in hits], question.relevant)
    return [scores[name] for name in GUARDED]


def _means(scores: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(sum(column) / len(scores) for column in zip(*scores, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of the weights; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retrieval.thread_weights",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("set", choices=("locomo", "friendsqa", "synthetic"))
    parser.add_argument("path", type=Path, nargs="?", help="the file of the set")
    parser.add_argument("--embedder", choices=EMBEDDERS, default=PLAIN, help="default none")
    parser.add_argument("--profile", help="default that of the store")
    parser.add_argument(
        "--weight", type=float, action="append", help="repeat it; default several to 2"
    )
    parser.add_argument("--cache", type=Path, default=default_cache())
    options = parser.parse_args(arguments)
    if options.set == "synthetic":
        judged = synthetic_set()
    elif options.path is None:
        parser.error(f"{options.set} needs the path of its file")
    else:
        judged = LOADERS[options.set](options.path)
    with embedding(options.embedder, options.cache, judged, Style()) as embedder:
        weights = options.weight or WEIGHTS
        count, asked = thread_weights(judged, weights, options.profile, embedder)
    print(
        f"{judged.name}, set {judged.digest}: embedder {options.embedder}, {count:,} questions, "
        f"profile {options.profile or 'of the store'}"
    )
    heads = [f"{session} {name}" for session in ("own", "next") for name in GUARDED]
    rows = [["thread", *heads]]
    rows += [
        [f"{each.weight:g}", *map(percent, each.own), *map(percent, each.next)] for each in asked
    ]
    for line in table(rows):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
