"""Judged sets of any kind, as JSON lines: the format of ``python -m benchmarks.retrieval judged``.

A line is an object with one member, a document or a query; the order of lines is free, except that
documents are stored in their order. Each name but the required is optional::

    {"document": {"id": "t1", "text": "I moved to Porto.", "role": "Ana",
                  "time": "2024-05-01T10:00:00Z", "parent": "session 1", "title": "…",
                  "corpus": "chat 1"}}
    {"query": {"id": "q1", "text": "Where does Ana live?", "relevant": {"t1": 1},
               "category": "single-hop", "corpus": "chat 1"}}

=========== ======================================================================================
id, text    required; an id is unique among documents of a corpus, or among all queries
role        the speaker
time        an ISO time; UTC without a zone
parent      the session of a turn; neighbours of one session are a conversation
title       the title
corpus      the store of the document, or of the query; default a single store for all
relevant    required: a map of documents' ids to grades, or a list of ids; 0 is not relevant
category    a group of queries, which is reported apart
=========== ======================================================================================

A query without a relevant document is left out, and counted in a notice.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from cerata import InvalidInput

from .judged_set import (
    CorpusBuilder,
    Document,
    JudgedSet,
    Question,
    grade_of,
    json_of,
    set_of,
    text_of,
    time_of,
)

_DOCUMENT: Final = frozenset({"id", "text", "role", "time", "parent", "title", "corpus"})
_QUERY: Final = frozenset({"id", "text", "relevant", "category", "corpus"})
_REMEDY: Final = 'Write lines such as {"document": {"id": "t1", "text": "…"}}.'


def load(path: Path) -> JudgedSet:
    """Return the set of a file of JSON lines.

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: a line is no document or query, or names a document that its corpus lacks.
    """
    builders: dict[str, CorpusBuilder] = {}
    unjudged = 0
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number:,}"
        kind, members = _entry(line, where)
        name = _string(members, "corpus", where) or "all"
        builder = builders.setdefault(name, CorpusBuilder(name))
        if kind == "document":
            builder.add_document(_document(members, where), where)
        elif (question := _question(members, where)).relevant:
            builder.add_question(question, where)
        else:
            unjudged += 1
    notices = [f"{unjudged:,} queries without a relevant document left out"] if unjudged else []
    corpora = [builder.built() for builder in builders.values()]
    return set_of(path.stem, corpora, path, notices)


def _entry(line: str, where: str) -> tuple[str, Mapping[str, object]]:
    """Return the kind of a line, and its members."""
    entry = json_of(line, where)
    if isinstance(entry, dict) and len(cast("dict[str, object]", entry)) == 1:
        [(kind, members)] = cast("dict[str, object]", entry).items()
        names = {"document": _DOCUMENT, "query": _QUERY}.get(kind)
        if names is not None and isinstance(members, dict):
            checked = cast("dict[str, object]", members)
            for name in checked:
                if name not in names:
                    raise InvalidInput(
                        f"A {kind} has no member {name!r:.60}",
                        where=where,
                        remedy=f"Use {', '.join(sorted(names))}.",
                    )
            return kind, checked
    raise InvalidInput(
        f"A line must be an object with a document or a query, not {line.strip()!r:.60}",
        where=where,
        remedy=_REMEDY,
    )


def _document(members: Mapping[str, object], where: str) -> Document:
    time = _string(members, "time", where)
    return Document(
        _required(members, "id", where),
        _required(members, "text", where),
        role=_string(members, "role", where),
        title=_string(members, "title", where),
        time=None if time is None else time_of(time, where),
        parent=_string(members, "parent", where),
    )


def _question(members: Mapping[str, object], where: str) -> Question:
    return Question(
        _required(members, "id", where),
        _required(members, "text", where),
        _grades(members.get("relevant"), where),
        category=_string(members, "category", where),
    )


def _grades(value: object, where: str) -> dict[str, float]:
    """Return the grade of each relevant document; grade 0 is left out."""
    if isinstance(value, list):
        value = dict.fromkeys(map(str, cast("list[object]", value)), 1)
    if not isinstance(value, dict):
        raise InvalidInput(
            f"relevant must map ids of documents to grades, not {value!r:.60}",
            where=where,
            remedy='Write "relevant": {"t1": 1}.',
        )
    grades = cast("dict[str, object]", value)
    graded = {name: grade_of(grade, where) for name, grade in grades.items()}
    return {name: grade for name, grade in graded.items() if grade > 0}


def _string(members: Mapping[str, object], name: str, where: str) -> str | None:
    value = members.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InvalidInput(
        f"{name} must be a string, not {value!r:.60}", where=where, remedy=f'Write "{name}": "…".'
    )


def _required(members: Mapping[str, object], name: str, where: str) -> str:
    value = _string(members, name, where)
    if value is None:
        raise InvalidInput(f"{name} is missing", where=where, remedy=f'Write "{name}": "…".')
    return value
