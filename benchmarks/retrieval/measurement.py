"""A run: every corpus of a set is written to a file, opened again, and asked its questions.

Owns the scores of each question, the ablation of a profile, and the time. All reads use the public
API: `Store.search` with ``k=128``, whose first 20 give the turns and the rest the sessions, and
`Store.recall` for the evidence inside a context. "Now" is the time of the newest turn, so that a
question's "last week" has a meaning. The source tokens of a context are those that are neither of
the texts nor of the speakers in it. Time is processor time of `Store.search` with ``k=10``, the
least of three passes, after a pass that has loaded indexes and embeddings.
"""

import hashlib
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import cerata
from cerata import Context, InvalidInput, Profile, Unsupported, View
from cerata.retrieval.ranking.profile import profile_of
from cerata.retrieval.tokenizer import tokenizer

from .embedding_cache import CachedEmbedder
from .ingest import StoredCorpus, Style, ingest
from .judged_set import Corpus, JudgedSet, Question
from .metrics import evidence_name, recall, session_scores, turn_scores
from .switches import switches, with_signals, without

HITS: Final = 128
"""Hits of a search that is scored: the depth to which a search fuses its lanes."""

TIMED_HITS: Final = 10
TIMED_PASSES: Final = 3
TIMED_QUESTIONS: Final = 500
"""Most questions of a corpus that are timed."""

CONTEXTS: Final = (500, 1_000, 2_000)
"""Budgets of a context, in tokens."""

Scores = dict[str, dict[str, float]]
"""The metrics of each question."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices of a run; None is the default profile of a store, the default policy.

    - ``signals`` have weights in place of those of the profile.
    """

    profile: str | None = None
    without: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    ablate: bool = False
    contexts: tuple[int, ...] = CONTEXTS
    style: Style = field(default_factory=Style)
    policy: str | None = None


@dataclass(slots=True)
class ContextCost:
    """The entries of all contexts of a budget, and their tokens by use."""

    contexts: int = 0
    entries: int = 0
    tokens: int = 0
    texts: int = 0
    speakers: int = 0

    def add(self, context: Context) -> None:
        """Count a context: a speaker is counted with its colon."""
        count = tokenizer().count
        self.contexts += 1
        self.entries += len(context.items)
        self.tokens += context.tokens
        for item in context.items:
            self.texts += count(context.text[slice(*item.span)])
            self.speakers += 0 if item.speaker is None else count(f" {item.speaker}:")

    @property
    def source(self) -> float:
        """The tokens of source lines, ids and line ends for each entry."""
        return (self.tokens - self.texts - self.speakers) / max(self.entries, 1)


@dataclass(slots=True)
class Measurement:
    """The outcome of a run.

    - ``ablations`` has the scores without each part of the profile; None if no lane can then run.
    - ``seconds`` is the processor time of each timed question.
    """

    scores: Scores = field(default_factory=dict[str, dict[str, float]])
    categories: dict[str, str] = field(default_factory=dict[str, str])
    ablations: dict[str, Scores | None] = field(default_factory=dict[str, Scores | None])
    seconds: list[float] = field(default_factory=list[float])
    profiles: dict[str, None] = field(default_factory=dict[str, None])
    lanes: dict[str, None] = field(default_factory=dict[str, None])
    costs: dict[int, ContextCost] = field(default_factory=dict[int, ContextCost])
    documents: int = 0
    size_bytes: int = 0
    ingest_seconds: float = 0.0
    rankings: Any = field(default_factory=hashlib.sha256)

    @property
    def digest(self) -> str:
        """A hash of all rankings."""
        digest: str = self.rankings.hexdigest()
        return digest[:12]


def measure(
    judged: JudgedSet,
    settings: Settings,
    embedder: Any = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Measurement:
    """Ask all questions of a set, a store for each corpus, in a temporary folder.

    Args:
        judged: the set
        settings: profile, ablation, budgets and form of writing
        embedder: the embedder of each store; default none
        progress: called with a line for each corpus; default none

    Raises:
        InvalidInput: the profile is unknown, or has no such part.
    """
    measurement = Measurement()
    with tempfile.TemporaryDirectory() as folder:
        for place, corpus in enumerate(judged.corpora, start=1):
            progress(
                f"{judged.name} {place} of {len(judged.corpora)}: {corpus.name}, "
                f"{len(corpus.documents):,} documents, {len(corpus.questions):,} questions"
            )
            if isinstance(embedder, CachedEmbedder):
                embedder.load([settings.style.text(document) for document in corpus.documents])
            stored = ingest(corpus, Path(folder) / f"{place}.cera", settings.style, embedder)
            measurement.documents += len(stored.documents)
            measurement.size_bytes += stored.size_bytes
            measurement.ingest_seconds += stored.seconds
            with cerata.open(stored.path, mode="r", embedder=embedder) as store:
                _Run(store, corpus, stored, settings, measurement).run()
            stored.path.unlink()
    return measurement


def profile_in_use(view: View, corpus: Corpus, profile: str | Profile | None) -> Profile:
    """Return a profile; for None that of the store, which a context of a question names.

    Raises:
        InvalidInput: the profile is unknown.
    """
    if profile is None:
        profile = view.recall(corpus.questions[0].text, max_tokens=100).profile
    return profile_of(profile)


class _Run:
    """The questions of one corpus."""

    def __init__(
        self,
        store: cerata.Store,
        corpus: Corpus,
        stored: StoredCorpus,
        settings: Settings,
        measurement: Measurement,
    ) -> None:
        self._store = store
        self._corpus = corpus
        self._documents = stored.documents
        self._settings = settings
        self._measurement = measurement
        self._view: View = store.at("HEAD", now=corpus.newest)
        self._sessions = corpus.sessions

    def run(self) -> None:
        """Ask the questions with the profile, then without each of its parts, then timed."""
        profile = self._profile()
        for question in self._corpus.questions:
            scores = self._scores(question, profile, digested=True)
            scores.update(self._evidence(question, profile))
            self._measurement.scores[question.id] = scores
            if question.category is not None:
                self._measurement.categories[question.id] = question.category
        self._time(profile)
        if self._settings.ablate:
            self._ablate(profile)

    def _profile(self) -> str | Profile | None:
        """Return the profile to ask with; a store's default is left to the store."""
        chosen = self._settings.profile
        if not (self._settings.without or self._settings.signals or self._settings.ablate):
            return chosen
        in_use = profile_in_use(self._view, self._corpus, chosen)
        profile = with_signals(in_use, self._settings.signals)
        return without(profile, *self._settings.without)

    def _scores(
        self, question: Question, profile: str | Profile | None, *, digested: bool = False
    ) -> dict[str, float]:
        hits = self._view.search(
            question.text, k=HITS, profile=profile, page=cerata.Page(group_by="frame")
        )
        ranked = [self._documents[hit.id] for hit in hits if hit.id in self._documents]
        if digested:
            self._measurement.rankings.update(repr((question.id, ranked)).encode())
        scores = turn_scores(ranked, question.relevant)
        if len(set(self._sessions.values())) > 1:
            scores.update(session_scores(ranked, question.relevant, self._sessions))
        return scores

    def _recall(
        self, question: Question, profile: str | Profile | None, max_tokens: int
    ) -> Context:
        return self._view.recall(
            question.text, max_tokens=max_tokens, profile=profile, policy=self._settings.policy
        )

    def _evidence(self, question: Question, profile: str | Profile | None) -> dict[str, float]:
        """Return the share of relevant documents that a context shows whole, for each budget."""
        scores: dict[str, float] = {}
        for tokens in self._settings.contexts:
            context = self._recall(question, profile, tokens)
            self._measurement.profiles[context.profile] = None
            self._measurement.lanes.update(dict.fromkeys(context.lanes))
            self._measurement.costs.setdefault(tokens, ContextCost()).add(context)
            frames = [
                frame
                for item in context.items
                if not item.clipped
                for frame in (item.id, *item.joined)
            ]
            names = [self._documents[frame] for frame in frames if frame in self._documents]
            scores[evidence_name(tokens)] = recall(names, question.relevant, len(names))
        return scores

    def _time(self, profile: str | Profile | None) -> None:
        for question in self._corpus.questions[:TIMED_QUESTIONS]:
            seconds: list[float] = []
            for _ in range(TIMED_PASSES):
                started = time.process_time()
                self._store.search(question.text, k=TIMED_HITS, profile=profile)
                seconds.append(time.process_time() - started)
            self._measurement.seconds.append(min(seconds))

    def _ablate(self, profile: str | Profile | None) -> None:
        assert isinstance(profile, Profile)
        ablations = self._measurement.ablations
        for name in switches(profile):
            scores = self._without(profile, name)
            stored = ablations.setdefault(name, {})
            if scores is None or stored is None:
                ablations[name] = None
            else:
                stored.update(scores)

    def _without(self, profile: Profile, name: str) -> Scores | None:
        """Return the scores without a part of the profile; None if no lane can then run."""
        try:
            reduced = without(profile, name)
        except InvalidInput:
            return None
        try:
            return {
                question.id: self._scores(question, reduced) for question in self._corpus.questions
            }
        except Unsupported:
            return None
