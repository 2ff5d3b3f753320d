"""Judged sets: documents, and questions with the documents that answer them.

Owns the values that each loader returns, their checks, and the place of a fault. Leaves out the
formats of files (`jsonl`, `conversations`, `cranfield`).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cerata import InvalidInput, NotFound
from cerata.packs.tuning.judged_lines import grade_of, json_of

__all__ = [
    "Corpus",
    "CorpusBuilder",
    "Document",
    "JudgedSet",
    "Question",
    "grade_of",
    "json_of",
    "set_of",
    "text_of",
    "time_of",
]


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a set: a turn of a conversation, or a whole document.

    - ``id`` is unique in its corpus; ``parent`` names the session that the turn belongs to.
    """

    id: str
    text: str
    role: str | None = None
    title: str | None = None
    time: datetime | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the grade of each document that answers it.

    - ``id`` is unique in its set; each grade is above 0.
    """

    id: str
    text: str
    relevant: Mapping[str, float]
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents that share a store, in the order of writing, and the questions about them."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]

    @property
    def sessions(self) -> dict[str, str]:
        """The session of each document that has a session."""
        return {document.id: document.parent for document in self.documents if document.parent}

    @property
    def newest(self) -> datetime | None:
        """The time of the newest document; None if no document has a time."""
        return max((document.time for document in self.documents if document.time), default=None)


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Corpora with their questions; ``notices`` has a line for each thing that was left out."""

    name: str
    corpora: tuple[Corpus, ...]
    notices: tuple[str, ...] = ()

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions, in order."""
        return tuple(question for corpus in self.corpora for question in corpus.questions)

    @property
    def digest(self) -> str:
        """A hash of all texts and grades, by which two runs show that their sets are equal."""
        content = hashlib.sha256()
        for corpus in self.corpora:
            for document in corpus.documents:
                content.update(repr((document.id, document.role, document.text)).encode())
            for question in corpus.questions:
                grades = sorted(question.relevant.items())
                content.update(repr((question.id, question.text, grades)).encode())
        return content.hexdigest()[:12]


class CorpusBuilder:
    """A corpus in the making: each document and judgement is checked when it is added.

    Args:
        name: the corpus's name, unique in its set
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._documents: dict[str, Document] = {}
        self._questions: dict[str, Question] = {}
        self._places: dict[str, str] = {}

    def add_document(self, document: Document, where: str, *, empty: bool = False) -> None:
        """Add a document.

        Args:
            document: the document
            where: its place in the file
            empty: accept an empty text, which is not stored and never found; default False

        Raises:
            InvalidInput: the text is empty, or the id is taken.
        """
        if not (empty or document.text.strip()):
            raise InvalidInput(
                f"The text of document {document.id!r:.60} is empty",
                where=where,
                remedy="Leave the document out.",
            )
        if document.id in self._documents:
            raise InvalidInput(
                f"The id {document.id!r:.60} is that of two documents",
                where=where,
                remedy="Give each document of a corpus another id.",
            )
        self._documents[document.id] = document

    def add_question(self, question: Question, where: str) -> None:
        """Add a question; the documents that it names may follow.

        Raises:
            InvalidInput: the text is empty, or the id is taken.
        """
        if not question.text.strip():
            raise InvalidInput(
                f"The text of question {question.id!r:.60} is empty",
                where=where,
                remedy="Leave the question out.",
            )
        if question.id in self._questions:
            raise InvalidInput(
                f"The id {question.id!r:.60} is that of two questions",
                where=where,
                remedy="Give each question of a set another id.",
            )
        self._questions[question.id] = question
        self._places[question.id] = where

    def has(self, document: str) -> bool:
        """Return whether a document with this id was added."""
        return document in self._documents

    def built(self) -> Corpus:
        """Return the corpus.

        Raises:
            InvalidInput: a judgement names a document that the corpus lacks.
        """
        for question in self._questions.values():
            for name in question.relevant:
                if name not in self._documents:
                    raise InvalidInput(
                        f"The judgements of question {question.id!r:.60} name the document "
                        f"{name!r:.60}, which corpus {self.name!r:.60} lacks",
                        where=self._places[question.id],
                        remedy="Add the document, or remove the judgement.",
                    )
        documents = tuple(self._documents.values())
        return Corpus(self.name, documents, tuple(self._questions.values()))


def set_of(
    name: str, corpora: Iterable[Corpus], path: Path, notices: Iterable[str] = ()
) -> JudgedSet:
    """Return a set of corpora; a corpus without questions is left out.

    Raises:
        InvalidInput: no question is left, or two questions have one id.
    """
    judged_corpora = tuple(corpus for corpus in corpora if corpus.questions)
    if not judged_corpora:
        raise InvalidInput(
            "The set has no question with a relevant document",
            where=str(path),
            remedy="Pass a file with judged questions.",
        )
    judged = JudgedSet(name, judged_corpora, tuple(notices))
    ids = [question.id for question in judged.questions]
    if len(set(ids)) != len(ids):
        twice = next(number for number in ids if ids.count(number) > 1)
        raise InvalidInput(
            f"The id {twice!r:.60} is that of questions in two corpora",
            where=str(path),
            remedy="Give each question of a set another id.",
        )
    return judged


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        NotFound: the file does not exist or cannot be read.
        InvalidInput: the file is not UTF-8, or empty.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "The file is not UTF-8",
            where=f"{path}, byte {error.start:,}",
            remedy="Convert the file.",
        ) from error
    except OSError as error:
        raise NotFound(
            f"The file cannot be read: {error.strerror}",
            where=str(path),
            remedy="Pass the path of the set's file.",
        ) from error
    if not text.strip():
        raise InvalidInput(
            "The file is empty", where=str(path), remedy="Pass a file with documents and questions."
        )
    return text


def time_of(text: str, where: str) -> datetime:
    """Return an ISO time; a time without a zone is in UTC.

    Raises:
        InvalidInput: the text is no ISO time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"The time {text!r:.60} cannot be read",
            where=where,
            remedy="Write an ISO time, such as 2024-05-01T10:00:00Z.",
        ) from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
