"""Names of spans and attributes, and the operation of each call.

The names are those of the semantic conventions for generative AI, all in development. They left
OpenTelemetry's Python package, so this module is their only place here.
"""

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

_READS: Final = """
    access accesses around audit blame children chunks conflicts content cooccurring count embedding
    entity evidence explain fact fact_history facts find_content find_stored find_uri frame
    get history highlights last links messages neighbours paths recall rerun_recall resolve
    search search_facts source_of tags timeline token_embedding values walk why
"""
_CREATIONS: Final = """
    append apply assert_fact assert_facts extract import_events import_facts put_entity put_frame
    put_frames remember remember_files remember_messages
"""
_UPDATES: Final = """
    correct_fact declare_predicate embed_missing judge link merge_entities record_access restore
    split_entity supersede tag unmerge unsplit update
"""
_DELETIONS: Final = "delete retract_fact retract_facts sweep unlink"

OPERATIONS: Final = {
    name: operation
    for operation, calls in (
        (SEARCH, _READS),
        (CREATE, _CREATIONS),
        (UPDATE, _UPDATES),
        (DELETE, _DELETIONS),
    )
    for name in calls.split()
}
"""The operation of each call that is a span."""

VIEWS: Final = ("at", "view", "within", "true_at", "speculate")
"""Calls that return a view, which is traced too."""

_UNTRACED: Final = """
    actor backup basis bisect branches checkpoint close commit compact compare diff digests
    drafts_after draw_facts draw_graph embedder entities export_events export_facts follow fork
    frames head info log log_id maintain now path projection rebuild refresh remembered_embedder
    replay report salvaged scope scoped shared since transaction verify
"""
UNTRACED: Final = frozenset(_UNTRACED.split())
"""Public names that are no span: handles, files, maintenance, and items read as they come."""

QUERIES: Final = frozenset({"recall", "search", "search_facts"})
"""Calls whose first argument is a question."""
