"""A query without words, as a filter: the form in which the command line takes filters."""

from functools import reduce

from cerata.engine.errors import InvalidInput
from cerata.projections.frames.filters import Filter
from cerata.projections.fulltext.query import And, FilterLeaf, Not, Or, Query

from .parser import query


def query_filter(text: str) -> Filter:
    """Return the filter that a query of tests alone describes.

    Args:
        text: A query, as `query` takes it, such as ``metadata.user.name:anna created:yesterday``.

    Raises:
        QuerySyntaxError: the query cannot be parsed.
        InvalidInput: the query has words, which are no test.
    """
    return _filter(query(text))


def _filter(tree: Query) -> Filter:
    match tree:
        case And(parts):
            return reduce(lambda left, right: left & right, map(_filter, parts))
        case Or(parts):
            return reduce(lambda left, right: left | right, map(_filter, parts))
        case Not(part):
            return ~_filter(part)
        case FilterLeaf(where):
            return where
        case _:
            raise InvalidInput(
                "A filter has tests such as tag:x or metadata.n:>5, and no words",
                remedy="Put the words into the question.",
            )
