"""A folder of mixed files: answers in small contexts, and words that one passage has.

Owns two measurements of a folder of a person's files, with its log files and without:

- questions with a text that the answer has: the share of contexts of `CONTEXT_TOKENS` that show
  it, and of first hits that have it. A question counts if a stored passage has its answer.
- words of one passage: each alone should find its passage first. No other
  passage has a word with the same stem; FTS5's porter is the judge, so that the product is not.
"""

import random
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import cerata
from cerata import InvalidInput

from .judged_set import json_of, text_of

FOLDER: Final = "mixed-folder"
QUESTIONS: Final = "mixed-folder-questions.json"
CONTEXT_TOKENS: Final = 400
WORDS: Final = 120
SEED: Final = 5
LETTERS_LEAST: Final = 4
"""Letters of a word that is a question."""

LOST_MOST: Final = 12
"""Lost answers and words that are printed; JSON has all."""

SUFFIXES: Final = frozenset(
    (
        *(".csv", ".eml", ".html", ".ipynb", ".json", ".jsonl", ".md", ".pdf", ".py", ".ts"),
        *(".txt", ".yaml"),
    )
)
LOG_SUFFIX: Final = ".log"

_FUNCTION_WORDS: Final = """
about after again against also anyone been before being below between both cannot could does doing
done down during each every everything from further gone have having here hers herself himself
into itself just made make many more most much must myself never only other ours over same self
shall should some such take than that their theirs them themselves then there these they this
those through under until upon very want well were what when where which while whom whose will
with within without would your yours yourself
"""
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
"""Words that carry no subject, so no passage must be first for them."""


@dataclass(slots=True)
class FolderScores:
    """The counts of a folder.

    - ``questions`` are those whose answer a passage has; ``lost`` those whose context lacks it.
    - ``answered_without`` are questions without an answer whose context has an entry.
    """

    questions: int = 0
    in_context: int = 0
    first: int = 0
    lost: list[str] = field(default_factory=list[str])
    answered_without: int = 0
    words: int = 0
    words_first: int = 0
    words_lost: list[str] = field(default_factory=list[str])

    def to_dict(self) -> dict[str, object]:
        """Return the counts as plain values."""
        return asdict(self)

    @property
    def text(self) -> str:
        """The counts in a line."""
        named = [*self.lost, *self.words_lost][:LOST_MOST]
        lost = f"; lost {', '.join(named)}{' …' if len(named) == LOST_MOST else ''}"
        return (
            f"of {self.questions} answers {self.in_context} in {CONTEXT_TOKENS} tokens and "
            f"{self.first} first; of {self.words} words {self.words_first} first; "
            f"{self.answered_without} answered without an answer"
            f"{lost if self.lost or self.words_lost else ''}"
        )


def measure_folder(
    data: Path,
    embedder: Any,
    with_log: bool,  # noqa: FBT001
    profile: Any = None,
) -> FolderScores:
    """Remember the files of a folder in memory, and ask its questions and its words.

    Args:
        data: the folder with `FOLDER` and `QUESTIONS`
        embedder: the embedder of the store; None for none
        with_log: remember log files, too
        profile: a profile; None is that of the store

    Raises:
        NotFound: a file cannot be read.
        InvalidInput: the file of questions has another form.
    """
    suffixes = SUFFIXES | {LOG_SUFFIX} if with_log else SUFFIXES
    folder = data / FOLDER
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in suffixes and not _is_hidden(path.relative_to(folder))
    )
    scores = FolderScores()
    with cerata.open(":memory:", embedder=embedder) as store:
        store.files.remember(files)
        frames = [frame for frame in store.frames(include_chunks=True) if frame.text]
        passages = {frame.id: frame.text for frame in frames if frame.kind != "document"}
        for question, answer in _questions(data / QUESTIONS):
            _ask(store, question, answer, passages, profile, scores)
        for word, passage in words_of_one(passages):
            scores.words += 1
            hits = store.search(word, k=1, profile=profile)
            if hits and hits[0].id == passage:
                scores.words_first += 1
            else:
                scores.words_lost.append(word)
    return scores


def _ask(
    store: cerata.Store,
    question: str,
    answer: str | None,
    passages: Mapping[int, str],
    profile: Any,
    scores: FolderScores,
) -> None:
    context = store.recall(question, max_tokens=CONTEXT_TOKENS, profile=profile)
    if answer is None:
        scores.answered_without += bool(context.items)
        return
    lower = answer.lower()
    if not any(lower in text.lower() for text in passages.values()):
        return
    scores.questions += 1
    hits = store.search(question, k=1, profile=profile)
    scores.first += bool(hits) and lower in hits[0].text.lower()
    if lower in context.text.lower():
        scores.in_context += 1
    else:
        scores.lost.append(question)


def words_of_one(passages: Mapping[int, str]) -> Sequence[tuple[str, int]]:
    """Return words that one passage alone has, in any inflection, with the id of the passage."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61')")
    database.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", passages.items())
    words = {
        word
        for text in passages.values()
        for word in re.findall(r"(?<![^\W])[^\W\d_]+(?![^\W])", text.lower())
        if len(word) >= LETTERS_LEAST and word not in FUNCTION_WORDS
    }
    lone: list[tuple[str, int]] = []
    for word in sorted(words):
        query = "SELECT rowid FROM texts WHERE texts MATCH ? LIMIT 2"
        rows = database.execute(query, (f'"{word}"',)).fetchall()
        if len(rows) == 1:
            lone.append((word, rows[0][0]))
    return random.Random(SEED).sample(lone, min(WORDS, len(lone)))


def _questions(path: Path) -> list[tuple[str, str | None]]:
    entries = json_of(text_of(path), str(path))
    try:
        members = cast("list[dict[str, str | None]]", entries)
        return [(str(entry["question"]), entry["answer"]) for entry in members]
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            "The file of questions has another form",
            where=str(path),
            remedy='Write a list of {"question": …, "answer": …}.',
        ) from error


def _is_hidden(path: Path) -> bool:
    return "node_modules" in path.parts or any(part.startswith(".") for part in path.parts)
