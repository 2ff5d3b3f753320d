"""XQuAD (Artetxe et al., 2020): paragraphs and questions, the same in several languages.

A file in SQuAD's form: ``data`` has articles with ``paragraphs``, each a ``context`` and its
``qas`` with ``id``, ``question`` and ``answers``. A paragraph is a document, and answers its
questions. All paragraphs of a language are one corpus.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from cerata import InvalidInput

from .judged_set import CorpusBuilder, Document, JudgedSet, Question, json_of, set_of, text_of

QUESTION_STEP: Final = 3
"""Every third question counts: 397 of 1,190."""


def load(path: Path) -> JudgedSet:
    """Return the set of a file, such as ``xquad.th.json``, under the name ``xquad-th``.

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: the file has another form.
    """
    builder = CorpusBuilder(path.stem)
    questions: list[tuple[Mapping[str, str], str]] = []
    for number, paragraph in enumerate(_paragraphs(path), start=1):
        name = f"p{number}"
        where = f"{path}, paragraph {number}"
        try:
            builder.add_document(Document(name, cast("str", paragraph["context"])), where)
            of_paragraph = cast("list[Mapping[str, str]]", paragraph["qas"])
            questions += [(question, name) for question in of_paragraph]
        except (KeyError, TypeError) as error:
            raise _wrong(where) from error
    for question, name in questions[::QUESTION_STEP]:
        where = f"{path}, question {question['id']}"
        builder.add_question(Question(question["id"], question["question"], {name: 1.0}), where)
    return set_of(path.stem.replace(".", "-"), [builder.built()], path)


def answers(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the texts of the answers of each question, by its id.

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: the file has another form.
    """
    answers_of: dict[str, tuple[str, ...]] = {}
    for paragraph in _paragraphs(path):
        for question in cast("list[dict[str, Any]]", paragraph["qas"]):
            answers_of[question["id"]] = tuple(answer["text"] for answer in question["answers"])
    return answers_of


def _paragraphs(path: Path) -> Iterator[Mapping[str, object]]:
    content = json_of(text_of(path), str(path))
    try:
        articles = cast("dict[str, list[dict[str, list[dict[str, object]]]]]", content)["data"]
        for article in articles:
            yield from article["paragraphs"]
    except (KeyError, TypeError) as error:
        raise _wrong(str(path)) from error


def _wrong(where: str) -> InvalidInput:
    return InvalidInput("The file has another form", where=where, remedy="Pass SQuAD's form.")
