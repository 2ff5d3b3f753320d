"""The quick tests: `pytest -m quick`, a part of each folder of tests, within two minutes.

`QUICK` names files; a new file is not quick until a line here names it. test_quick.py compares the
table with the folders. The files were chosen by seconds of processor time, in all about 140:
``pytest -m quick --durations 20`` shows the longest tests.
"""

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent

QUICK: Final = {
    "": "errors exports install packs prose quick",
    "agents": "references runs schemas slots spec",
    "agents/activities": "activities",
    "agents/continuity": "assembly entities exchanges",
    "agents/growth": "judge",
    "agents/turns": "messages",
    "agents/turns/dynamics": "predictor",
    "aio": "mirror store",
    "benchmarks": "judged_sets retrieval_metrics",
    "cases": "cases",
    "cli": "cli excerpts facts html_pages time_bars writing",
    "engine": "codec compact envelope erasure file idempotency layouts log open recovery ring"
    " witnesses writer",
    "fault_injection": "crash_of_a_toy disk model monitor schedule states",
    "format": "cddl format_page golden reader reliability_page",
    "integrations": "importers mcp_definitions mcp_tokens mcp_tools",
    "memory": "first_use given_up review store",
    "memory/batch": "arguments keys",
    "memory/embeddings": "embeddings",
    "memory/facts": "extraction fact_lines fact_times facts",
    "memory/frames": "audit versions",
    "memory/graph": "graph",
    "memory/ingest": "files ingest",
    "memory/interchange": "copies",
    "memory/links": "links",
    "memory/maintenance": "heads",
    "memory/search": "contexts explain lanes questions",
    "memory/snapshot": "scopes",
    "memory/values": "text_diff",
    "mutation": "mutants",
    "packs/experiments": "replayed_life",
    "packs/plots": "plots",
    "packs/tuning": "recalls",
    "projections": "as_of registry_keys",
    "projections/columnar": "relative_times",
    "projections/core": "event_batch",
    "projections/facts": "facts roles",
    "projections/frames": "frames",
    "projections/fulltext": "highlights query text",
    "projections/rows": "rows",
    "projections/vectors": "candidates nearest",
    "replay": "checkpoints erasures own_projections verify versions",
    "retrieval": "chunking question_times tables text_dates tokenizer",
    "retrieval/context": "context policies",
    "retrieval/embedders": "embedders",
    "retrieval/query_language": "query",
    "retrieval/ranking": "profiles",
}
"""The quick files of each folder, without "test_" and ".py"."""

FILES: Final = frozenset(
    TESTS / folder / f"test_{name}.py" for folder, names in QUICK.items() for name in names.split()
)
