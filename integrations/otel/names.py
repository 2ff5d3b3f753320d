"""Names of spans and attributes, and the operation of each call.

The names are those of the semantic conventions for generative AI, all in development. They left
OpenTelemetry's Python package, so this module is their only place here.
"""

from collections.abc import Mapping
from typing import Final

TRACER: Final = "cerata"

OPERATION: Final = "gen_ai.operation.name"
STORE_ID: Final = "gen_ai.memory.store.id"
RECORD_ID: Final = "gen_ai.memory.record.id"
RECORD_COUNT: Final = "gen_ai.memory.record.count"
QUERY_TEXT: Final = "gen_ai.memory.query.text"
RECORDS: Final = "gen_ai.memory.records"
ERROR_TYPE: Final = "error.type"
BASIS: Final = "cerata.basis"
METHOD: Final = "cerata.method"

SEARCH: Final = "search_memory"
CREATE: Final = "create_memory"
UPDATE: Final = "update_memory"
DELETE: Final = "delete_memory"

_CALLS: Final = {
    SEARCH: {
        "": "access accesses count facts frame get messages recall search",
        "graph": """
            cooccurring conflicts entity evidence fact links neighbours paths resolve search
            versions walk why
        """,
        "history": "around audit blame explain last of rerun tags timeline",
        "files": "by_content by_uri children chunks content highlights source stored values",
        "embeddings": "of tokens_of",
    },
    CREATE: {
        "": "append assert_fact put_frame put_frames remember remember_messages",
        "graph": "assert_many extract name",
        "files": "remember",
        "interchange": "import_events import_facts",
        "upkeep": "apply",
    },
    UPDATE: {
        "": "correct_fact judge record_access supersede update",
        "graph": "declare link merge split unmerge unsplit",
        "history": "restore tag",
        "embeddings": "fill",
    },
    DELETE: {
        "": "delete retract_fact",
        "graph": "retract_many unlink",
        "upkeep": "sweep",
    },
}


def _named(calls: Mapping[str, str]) -> list[str]:
    """Return the names of calls, those of a handle with its name: ``graph.link``."""
    return [
        f"{handle}.{name}" if handle else name
        for handle, names in calls.items()
        for name in names.split()
    ]


OPERATIONS: Final = {
    name: operation for operation, calls in _CALLS.items() for name in _named(calls)
}
"""The operation of each call that is a span."""

VIEWS: Final = ("at", "history.view", "within", "true_at", "upkeep.speculate")
"""Calls that return a view, which is traced too."""

UNTRACED: Final = frozenset(
    _named(
        {
            "": """
                actor backup basis checkpoint close diff frames head log
                log_id now path report scope scoped shared transaction verify
            """,
            "graph": "entities",
            "history": "bisect compare salvaged since",
            "stream": "commit digests follow projection refresh replay",
            "interchange": "export_events export_facts",
            "upkeep": "branches compact drafts_after fork info maintain rebuild",
            "embeddings": "embedder used",
        }
    )
)
"""Public names that are no span: handles, files, maintenance, and items read as they come."""

QUERIES: Final = frozenset({"recall", "search", "graph.search"})
"""Calls whose first argument is a question."""
