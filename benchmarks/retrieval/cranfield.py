"""The Cranfield collection: 1,400 abstracts of aerodynamics, 225 queries with judgements.

A folder with ``cran.all.1400.xml``, ``cran.qry.xml`` and ``cranqrel.trec.txt``. The judgements
number the queries 1, 2, … in the order of their file. Grades above 0 are relevant, all alike.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cerata import InvalidInput

from .judged_set import CorpusBuilder, Document, JudgedSet, Question, grade_of, set_of, text_of

DOCUMENTS: Final = "cran.all.1400.xml"
QUERIES: Final = "cran.qry.xml"
JUDGEMENTS: Final = "cranqrel.trec.txt"

_COLUMNS: Final = 4
"""Columns of a judgement: query, iteration, document, grade."""


def load(path: Path) -> JudgedSet:
    """Return the collection of a folder.

    Raises:
        NotFound: a file of the folder cannot be read.
        InvalidInput: a file has another form, or a judgement names no query or document.
    """
    builder = CorpusBuilder("cranfield")
    for document, where in _documents(path / DOCUMENTS):
        builder.add_document(document, where, empty=True)
    queries = _queries(path / QUERIES)
    relevant: dict[int, dict[str, float]] = {}
    places: dict[int, str] = {}
    for query, name, where in _judgements(path / JUDGEMENTS):
        if query not in queries:
            raise InvalidInput(
                f"A judgement names the query {query}, and there are {len(queries):,}",
                where=where,
                remedy="Number the queries in the order of their file, from 1.",
            )
        if not builder.has(name):
            raise InvalidInput(
                f"A judgement names the document {name!r:.60}, which {DOCUMENTS} lacks",
                where=where,
                remedy="Add the document, or remove the judgement.",
            )
        relevant.setdefault(query, {})[name] = 1.0
        places.setdefault(query, where)
    for query, grades in relevant.items():
        builder.add_question(Question(str(query), queries[query], grades), places[query])
    return set_of("cranfield", [builder.built()], path)


def _documents(path: Path) -> Iterator[tuple[Document, str]]:
    """Yield the documents with their places; two of the collection are empty, and judged."""
    for place, entry in enumerate(re.findall(r"<doc>(.*?)</doc>", text_of(path), re.DOTALL)):
        where = f"{path}, document {place + 1:,}"
        name = _member(entry, "docno")
        if not name:
            raise InvalidInput(
                "A document has no docno", where=where, remedy="Write <docno>1</docno>."
            )
        title, text = _member(entry, "title"), _member(entry, "text")
        yield Document(name, text or title, title=title or None), where


def _queries(path: Path) -> dict[int, str]:
    titles = re.findall(r"<title>(.*?)</title>", text_of(path), re.DOTALL)
    return {number: _plain(title) for number, title in enumerate(titles, start=1)}


def _judgements(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield query, document and place of each judgement with a grade above 0."""
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        where = f"{path}, line {number:,}"
        columns = line.split()
        if not columns:
            continue
        if len(columns) < _COLUMNS or not columns[0].isdecimal():
            raise InvalidInput(
                f"A judgement must be query, iteration, document and grade, not {line!r:.60}",
                where=where,
                remedy="Write a line such as 1 0 184 1.",
            )
        try:
            grade = float(columns[3])
        except ValueError:
            grade = -1.0
        if grade_of(grade, where) > 0:
            yield int(columns[0]), columns[2], where


def _member(entry: str, name: str) -> str:
    match = re.search(rf"<{name}>(.*?)</{name}>", entry, re.DOTALL)
    return _plain(match[1]) if match else ""


def _plain(text: str) -> str:
    return " ".join(html.unescape(text).split())
