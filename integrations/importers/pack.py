"""The pack of importers: the sources that need no bridge, and the option of ``file import``.

Owns the names of the pack's parts, and the kinds of sources of all packs. Reading it loads no other
module of the pack.
"""

from typing import Final

from cerata.engine.packs import Addition, Option, Pack, of_packs, packs


@of_packs
def kinds() -> tuple[str, ...]:
    """Return the kinds of sources."""
    return ("jsonl", *sorted(kind for pack in packs() for kind in pack.importers))


PACK: Final = Pack(
    name="importers",
    docs=("importers.md",),
    importers={
        kind: f"cerata.integrations.importers.{kind}:opened"
        for kind in ("chroma", "graphiti", "mem0")
    },
    additions=(
        Addition(
            "file import",
            "cerata.integrations.importers.verbs:run_import",
            (
                Option(
                    "--from KIND",
                    "FILE is of another memory: {choices}",
                    dest="kind",
                    choices=kinds,
                ),
                Option("--dry-run", "with --from: print counts and problems only"),
            ),
            ("--from mem0 ~/.mem0/history.db --dry-run",),
            "or the records of another memory",
        ),
    ),
)
