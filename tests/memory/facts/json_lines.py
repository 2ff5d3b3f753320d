"""Lines of facts by hand, for tests of their import."""

import json

TEXT = "Ann lives in Big Blue."
"""The text of a frame that may be evidence."""


def line(**fields: object) -> str:
    """Return a fact's line with some fields that are not the usual ones."""
    usual = {"type": "fact", "version": 1, "id": 1, "subject": "ann", "predicate": "likes"}
    return json.dumps({**usual, "object": "tea", "object_kind": "string", **fields})
