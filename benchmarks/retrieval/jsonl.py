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
from typing import Final

from cerata.packs.tuning.judged_lines import QUERY, entry_of, judged_query, required, string

from .judged_set import CorpusBuilder, Document, JudgedSet, Question, set_of, text_of, time_of

_DOCUMENT: Final = frozenset({"id", "text", "role", "time", "parent", "title", "corpus"})
_MEMBERS: Final = {"document": _DOCUMENT, "query": QUERY - {"group", "scope"}}


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
        kind, members = entry_of(line, where, _MEMBERS)
        name = string(members, "corpus", where) or "all"
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


def _document(members: Mapping[str, object], where: str) -> Document:
    time = string(members, "time", where)
    return Document(
        required(members, "id", where),
        required(members, "text", where),
        role=string(members, "role", where),
        title=string(members, "title", where),
        time=None if time is None else time_of(time, where),
        parent=string(members, "parent", where),
    )


def _question(members: Mapping[str, object], where: str) -> Question:
    name = required(members, "id", where)
    query = judged_query(members, where)
    return Question(name, query.text, query.relevant, category=query.category)
