"""A learned profile on a judged set: its weights, and its gain on left-out corpora.

A corpus is a group, so a conversation is measured with weights that the rest taught; a set of one
corpus is divided by the hash of its questions. The learning is that of `cerata.tuning.tune`.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cerata
from cerata import Profile, Tuning
from cerata.memory.search.recall_rerun import plain_request
from cerata.memory.snapshot.reader import snapshot_of
from cerata.packs.tuning.candidates import DEPTH, Candidates, JudgedQuestion, candidates_of
from cerata.packs.tuning.tuning import NAME, Learner, learned

from .embedding_cache import CachedEmbedder
from .ingest import StoredCorpus, Style, ingest
from .judged_set import Corpus, JudgedSet
from .measurement import profile_in_use


@dataclass(frozen=True, slots=True)
class TuningReport:
    """A learned profile, its set, and the name of the embedder."""

    judged: JudgedSet
    embedder: str
    tuning: Tuning

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values."""
        return {
            "set": self.judged.name,
            "digest": self.judged.digest,
            "embedder": self.embedder,
            **self.tuning.to_dict(),
        }

    def lines(self) -> list[str]:
        """Return the report as lines: each metric, then each weight."""
        tuning = self.tuning
        head = f"{self.judged.name} {self.judged.digest}, embedder {self.embedder}"
        counts = f"{tuning.questions:,} questions in {tuning.groups:,} groups, {tuning.folds} folds"
        lines = [
            f"{gain.metric:<8} {tuning.base} {gain.before:.1%}, learned {gain.after:.1%}, "
            f"change {100 * gain.change:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}], "
            f"{gain.better:,} better, {gain.worse:,} worse"
            for gain in tuning.gains
        ]
        weights = {**tuning.profile.weights, **tuning.profile.signals}
        return [
            f"{head}: {counts}",
            *lines,
            ", ".join(f"{name} {weight:g}" for name, weight in weights.items()),
        ]


def tuned(
    judged: JudgedSet,
    profile: str | None,
    style: Style,
    embedder: Any = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Tuning:
    """Learn weights from all questions of a set, a store for each corpus, in a temporary folder.

    Args:
        judged: the set
        profile: the profile in use; None is the default of the first store
        style: the form of writing
        embedder: the embedder of each store; default none
        progress: called with a line for each corpus; default none

    Raises:
        InvalidInput: the profile is unknown.
    """
    in_use: Profile | None = None
    candidates: list[Candidates] = []
    with tempfile.TemporaryDirectory() as folder:
        for place, corpus in enumerate(judged.corpora, start=1):
            progress(f"{judged.name} {place} of {len(judged.corpora)}: {corpus.name}")
            if isinstance(embedder, CachedEmbedder):
                embedder.load([style.text(document) for document in corpus.documents])
            stored = ingest(corpus, Path(folder) / f"{place}.cera", style, embedder)
            with cerata.open(stored.path, mode="r", embedder=embedder) as store:
                if in_use is None:
                    in_use = profile_in_use(store.at("HEAD"), corpus, profile)
                candidates += map(candidates_of, _questions(store, corpus, stored, in_use))
            stored.path.unlink()
    assert in_use is not None
    return learned(candidates, Learner(in_use, NAME))


def _questions(
    store: cerata.Store, corpus: Corpus, stored: StoredCorpus, profile: Profile
) -> Iterator[JudgedQuestion]:
    snapshot = snapshot_of(store.at("HEAD", now=corpus.newest))
    frames = {name: frame for frame, name in stored.documents.items()}
    for question in corpus.questions:
        names = [*question.relevant]
        yield JudgedQuestion(
            snapshot=snapshot,
            request=plain_request(question.text, profile, DEPTH),
            group=corpus.name,
            items={frames[name]: place for place, name in enumerate(names) if name in frames},
            grades=[*question.relevant.values()],
        )
