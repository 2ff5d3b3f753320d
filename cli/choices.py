"""Names that options take, as plain text: a parser must not load the rooms that define them.

tests/cli/test_startup.py compares each with the table of its room.
"""

from typing import Final

from cerata.engine.packs import saved_names, shipped_packs

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vscode")
DIRECTIONS: Final = ("out", "in", "both")
FACT_SOURCES: Final = ("observed", "inferred", "hypothesis", "synthetic")
_OF_PACKS: Final = (kind for pack in shipped_packs() for kind in pack.importers)
IMPORTERS: Final = ("jsonl", *sorted(("chroma", "graphiti", "mem0", *_OF_PACKS)))
LINK_KINDS: Final = (
    "assumes",
    "contradicts",
    "depends_on",
    "derived_from",
    "generated_from",
    "invalidates",
    "supersedes",
    "supports",
    "validated_by",
)
OBJECT_KINDS: Final = ("string", "entity", "number", "boolean", "time")
ORDERS: Final = ("score", "time")
POLICIES: Final = ("whole", "tiered")
PROFILES: Final = ("default", "words", "continuity", "used")
_KERNEL_PROJECTIONS: Final = (
    "frames",
    "fulltext",
    "facts",
    "facttext",
    "links",
    "vectors",
    "tags",
    "access",
    "embedders",
)
PROJECTIONS: Final = (*saved_names(_KERNEL_PROJECTIONS),)
