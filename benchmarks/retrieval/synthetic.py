"""Small judged sets made by a seeded generator: no licence, no download, the same everywhere.

In conversations, people ask each other about their things, often in other words than the question
of the set; the reply has the fact and a word for the kind of thing. Small talk lies between.
Documents are reports about the care of a thing at a place, and many share a thing or a place. The
sets guard that a change lowers nothing by far; absolute figures mean little.
"""

import random
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Final

from .judged_set import Corpus, CorpusBuilder, Document, JudgedSet, Question

SEED: Final = 20_240_229
CONVERSATIONS: Final = 2
SESSIONS: Final = 6
EXCHANGES: Final = 5
"""Questions and replies in a session."""

_PAIRS: Final = (("Ana", "Tomas"), ("Ingrid", "Kofi"))
_KINDS: Final = {
    "music": ("violin", "guitar", "piano", "choir", "podcast"),
    "boat": ("kayak", "sailboat", "canoe"),
    "plants": ("greenhouse", "garden", "allotment", "orchard"),
    "animals": ("puppy", "aquarium", "beehive"),
    "lens": ("telescope", "camera"),
    "wheels": ("bicycle", "motorbike", "caravan"),
    "oven": ("sourdough", "kitchen", "bakery"),
    "artwork": ("mural", "sculpture", "quilt", "novel"),
    "training": ("marathon", "tent", "workshop"),
}
"""Things by a word that a reply uses for them."""

_THINGS: Final = tuple(thing for things in _KINDS.values() for thing in things)
KIND_OF: Final = {thing: kind for kind, things in _KINDS.items() for thing in things}
"""The kind of each thing: an embedder knows that a kayak is a boat."""

SYNONYMS: Final = {
    "lacquer": "varnish",
    "depot": "storage",
    "soldering": "repair",
    "washing": "cleaning",
    "haulage": "transport",
    "premium": "insurance",
    "fiddle": "violin",
    "broadcast": "podcast",
    "paddleboat": "kayak",
    "glasshouse": "greenhouse",
    "bike": "bicycle",
    "whelp": "puppy",
    "fishtank": "aquarium",
    "loaf": "sourdough",
    "manuscript": "novel",
    "bivouac": "tent",
    "patchwork": "quilt",
    "moped": "motorbike",
}
"""Words of texts, with the word of the questions that means the same: an embedder knows them."""

_SAID: Final = {asked: said for said, asked in SYNONYMS.items()}

_PLACES: Final = ("Porto", "Lagos", "Bergen", "Oaxaca", "Turin", "Accra", "Leipzig", "Kyoto")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TALK: Final = (
    *("That sounds lovely!", "I am so happy for you.", "Work has been busy this week."),
    *("The weather here is awful.", "Let us talk again soon.", "Thanks for asking!"),
    *("I could not sleep last night.", "Did you see the news?", "Haha, same here."),
)
_FORMS: Final = (
    (
        "How is your {said} going?",
        "Great, I finally got the {kind} sorted last {day}!",
        "When did {name} get the {thing} sorted?",
        "when",
    ),
    (
        "Where did you find that {said}?",
        "A friend brought it from {place}, with other {kind} things.",
        "Where does the {thing} of {name} come from?",
        "where",
    ),
    (
        "How much time does the {said} take you?",
        "The {kind}? About {count} hours a week, more in summer.",
        "How many hours does {name} spend on the {thing}?",
        "how many",
    ),
    (
        "I heard about your {said}. Why now?",
        "Because my doctor says {kind} would slow me down.",
        "Why did {name} take up the {thing}?",
        "why",
    ),
)
"""A turn, the reply with the fact, a question that the reply answers, and its category."""


REPORTS: Final = 60
_CARE: Final = (
    ("varnish", "The lacquer came off in the sun and was renewed in two thin coats."),
    ("storage", "Over the winter it stood dry in a depot, away from the stove."),
    ("repair", "A cracked joint got its soldering with glue and was sanded by hand."),
    ("cleaning", "Warm water and a soft brush did the washing after the season."),
    ("transport", "The haulage took two people, with blankets at the edges."),
    ("insurance", "The yearly premium rose because its value had grown."),
)
"""A subject as a question names it, and the sentence of a report about it."""


def synthetic_documents(seed: int = SEED) -> JudgedSet:
    """Return reports with four sentences each, and a question for each report."""
    source = random.Random(seed)
    builder = CorpusBuilder("reports")
    pairs = [*combinations(_CARE, 2)]
    subjects = [(thing, pair) for thing in _THINGS[:8] for pair in pairs]
    for number, (thing, pair) in enumerate(source.sample(subjects, REPORTS), start=1):
        (first, one), (second, two) = pair
        place = source.choice(_PLACES)
        report = f"A report about the {thing} in {place}. {one} {two} {source.choice(_TALK)}"
        name = f"report {number}"
        builder.add_document(Document(name, report), name)
        text = f"{first} and {second} of a {thing}"
        builder.add_question(Question(name, text, {name: 1.0}), name)
    return JudgedSet("synthetic documents", (builder.built(),))


def synthetic_set(seed: int = SEED) -> JudgedSet:
    """Return the set of a seed."""
    source = random.Random(seed)
    corpora = [_corpus(number, source) for number in range(CONVERSATIONS)]
    return JudgedSet("synthetic", tuple(corpora))


def _corpus(number: int, source: random.Random) -> Corpus:
    builder = CorpusBuilder(f"conversation {number + 1}")
    things = source.sample(_THINGS, SESSIONS * EXCHANGES)
    start = datetime(2024, 1, 8, 18, 30, tzinfo=UTC)
    for session in range(1, SESSIONS + 1):
        when = start + timedelta(days=9 * session)
        _session(builder, number, session, when, things[:EXCHANGES], source)
        things = things[EXCHANGES:]
    return builder.built()


def _session(
    builder: CorpusBuilder,
    number: int,
    session: int,
    when: datetime,
    things: list[str],
    source: random.Random,
) -> None:
    """Add the turns of a session, and a question for each exchange."""
    turns: list[str] = []

    def put(speaker: str, text: str) -> None:
        name = f"D{session}:{len(turns) + 1}"
        turns.append(name)
        document = Document(name, text, role=speaker, time=when, parent=f"session {session}")
        builder.add_document(document, name)

    for subject in things:
        first, second = source.sample(_PAIRS[number], 2)
        opening, reply, question, category = source.choice(_FORMS)
        words = {
            "thing": subject,
            "kind": KIND_OF[subject],
            "said": _SAID.get(subject, subject),
            "name": second,
            "day": source.choice(_DAYS),
            "place": source.choice(_PLACES),
            "count": str(source.randrange(2, 20)),
        }
        for _ in range(source.randrange(3)):
            put(source.choice([first, second]), source.choice(_TALK))
        put(first, opening.format(**words))
        put(second, reply.format(**words))
        text = question.format(**words)
        judged = Question(f"{number + 1}/{turns[-1]}", text, {turns[-1]: 1.0}, category=category)
        builder.add_question(judged, turns[-1])
