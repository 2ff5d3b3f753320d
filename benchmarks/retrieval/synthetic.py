"""A small judged set made by a seeded generator: no licence, no download, the same everywhere.

People ask each other about their things; the reply has the fact and rarely the subject, as in real
chats. Small talk lies between. The set guards that a change lowers nothing by far; absolute figures
mean little.
"""

import random
from datetime import UTC, datetime, timedelta
from typing import Final

from .judged_set import Corpus, CorpusBuilder, Document, JudgedSet, Question

SEED: Final = 20_240_229
CONVERSATIONS: Final = 2
SESSIONS: Final = 6
EXCHANGES: Final = 5
"""Questions and replies in a session."""

_PAIRS: Final = (("Ana", "Tomas"), ("Ingrid", "Kofi"))
_THINGS: Final = (
    *("violin", "kayak", "greenhouse", "telescope", "bicycle", "sourdough", "garden", "novel"),
    *("marathon", "puppy", "kitchen", "guitar", "camera", "allotment", "sailboat", "quilt"),
    *("piano", "tent", "aquarium", "motorbike", "bakery", "podcast", "orchard", "canoe"),
    *("mural", "choir", "beehive", "workshop", "caravan", "sculpture"),
)
_PLACES: Final = ("Porto", "Lagos", "Bergen", "Oaxaca", "Turin", "Accra", "Leipzig", "Kyoto")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TALK: Final = (
    *("That sounds lovely!", "I am so happy for you.", "Work has been busy this week."),
    *("The weather here is awful.", "Let us talk again soon.", "Thanks for asking!"),
    *("I could not sleep last night.", "Did you see the news?", "Haha, same here."),
)
_FORMS: Final = (
    (
        "How is your {thing} going?",
        "Great, I finally got it sorted last {day}!",
        "When did {name} get the {thing} sorted?",
        "when",
    ),
    (
        "Where did you find that {thing}?",
        "A friend of mine brought it from {place}.",
        "Where does the {thing} of {name} come from?",
        "where",
    ),
    (
        "How much time does the {thing} take you?",
        "About {count} hours a week, more in summer.",
        "How many hours does {name} spend on the {thing}?",
        "how many",
    ),
    (
        "I heard about your {thing}. Why now?",
        "Because my doctor wants me to slow down.",
        "Why did {name} take up the {thing}?",
        "why",
    ),
)
"""A turn, the reply with the fact, a question that the reply answers, and its category."""


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
