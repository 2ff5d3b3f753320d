"""Lines of judged queries, as JSON: an object with one member, a query or a document.

    {"query": {"text": "Where does Ana live?", "relevant": {"#12": 2, "notes/ana.md": 1}}}

=========== ======================================================================================
text        the question, in plain language
relevant    a map of names to grades, or a list of names; 0 is not relevant
id          a name of the query
category    a kind of query, which a measurement reports apart
group       queries that belong together, such as those of one conversation
corpus      the store of the query, if a file has queries for several; a group, too
scope       a map of names and values, in which the query is asked
=========== ======================================================================================

``text`` and ``relevant`` are required. Owns the members of a query and their checks, for files of
judgements and for the judged sets of benchmarks/retrieval. Leaves out the meaning of names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from cerata.engine.errors import InvalidInput
from cerata.engine.events import ScopeValue

QUERY: Final = frozenset({"id", "text", "relevant", "category", "group", "corpus", "scope"})
"""The members of a query."""

GRADE_MAX: Final = 1e6
"""A grade is below; sums of larger grades lose digits."""

LINE_SIZE_MAX: Final = 1 << 20
"""Most bytes of a line: a query with 50,000 relevant frames has fewer."""

_REMEDY: Final = 'Write lines such as {"document": {"id": "t1", "text": "…"}}.'


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query as a line has it; each grade is above 0."""

    text: str
    relevant: Mapping[str, float]
    id: str | None = None
    category: str | None = None
    group: str | None = None
    corpus: str | None = None
    scope: Mapping[str, ScopeValue] | None = None


def entry_of(
    line: str, where: str, names: Mapping[str, frozenset[str] | None], remedy: str = _REMEDY
) -> tuple[str, Mapping[str, object]]:
    """Return the kind of a line, and its members.

    Args:
        line: the line
        where: its place, for errors
        names: the members that each kind may have; None for any
        remedy: an example of a line

    Raises:
        InvalidInput: the line is no such object, or has another member.
    """
    entry = json_of(line, where)
    if isinstance(entry, dict) and len(cast("dict[str, object]", entry)) == 1:
        [(kind, members)] = cast("dict[str, object]", entry).items()
        if kind in names and isinstance(members, dict):
            checked = cast("dict[str, object]", members)
            known = names[kind]
            if known is not None:
                _check_members(checked, kind, known, where)
            return kind, checked
    raise InvalidInput(
        f"A line must be an object with a {' or a '.join(names)}, not {line.strip()!r:.60}",
        where=where,
        remedy=remedy,
    )


def _check_members(
    members: Mapping[str, object], kind: str, known: frozenset[str], where: str
) -> None:
    for name in members:
        if name not in known:
            raise InvalidInput(
                f"A {kind} has no member {name!r:.60}",
                where=where,
                remedy=f"Use {', '.join(sorted(known))}.",
            )


def judged_query(members: Mapping[str, object], where: str) -> JudgedQuery:
    """Return a query by its members.

    Raises:
        InvalidInput: a member is missing, or has another type.
    """
    return JudgedQuery(
        required(members, "text", where),
        _grades(members.get("relevant"), where),
        id=string(members, "id", where),
        category=string(members, "category", where),
        group=string(members, "group", where),
        corpus=string(members, "corpus", where),
        scope=_scope(members.get("scope"), where),
    )


def _scope(value: object, where: str) -> Mapping[str, ScopeValue] | None:
    if value is None:
        return None
    entries = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if not entries or not all(isinstance(entry, str | int) for entry in entries.values()):
        raise InvalidInput(
            f"scope must map names to strings, whole numbers or booleans, not {value!r:.60}",
            where=where,
            remedy='Write "scope": {"user": "ana"}, or leave it out.',
        )
    return cast("dict[str, ScopeValue]", entries)


def _grades(value: object, where: str) -> dict[str, float]:
    """Return the grade of each relevant name; grade 0 is left out."""
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


def string(members: Mapping[str, object], name: str, where: str) -> str | None:
    """Return a member that is a string; None if it is missing.

    Raises:
        InvalidInput: it has another type.
    """
    value = members.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InvalidInput(
        f"{name} must be a string, not {value!r:.60}", where=where, remedy=f'Write "{name}": "…".'
    )


def required(members: Mapping[str, object], name: str, where: str) -> str:
    """Return a member that is a string.

    Raises:
        InvalidInput: it is missing, or has another type.
    """
    value = string(members, name, where)
    if value is None:
        raise InvalidInput(f"{name} is missing", where=where, remedy=f'Write "{name}": "…".')
    return value


def json_of(text: str, where: str) -> object:
    """Return a parsed JSON text.

    Raises:
        InvalidInput: the text is no JSON.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:  # a number may have too many digits
        place = f", character {error.pos:,}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidInput(
            f"The text is not JSON: {error}", where=where + place, remedy="Correct the text."
        ) from error
    return value


def grade_of(value: object, where: str) -> float:
    """Return a grade: a finite number from 0.

    Raises:
        InvalidInput: the value is another.
    """
    # A comparison, because a large int is no float; NaN fails it.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < GRADE_MAX:
        return float(value)
    raise InvalidInput(
        f"A grade must be a number from 0 below 1,000,000, not {value!r:.60}",
        where=where,
        remedy="Write 1 for a relevant document, more for a better document.",
    )
