"""Which tests are about which module of the core: they have to notice its mutants."""

from collections.abc import Iterable

ABOUT: dict[str, tuple[str, ...]] = {
    "create": ("create", "open"),
    "file": ("file", "create", "growth", "open"),
    "format.checksums": ("file",),
    "format.extent": ("layouts", "file", "growth"),
    "format.footer": ("layouts", "file", "growth"),
    "format.page": ("layouts", "file", "growth"),
    "format.record": ("layouts", "file", "growth"),
    "handle": ("durability",),
    "handle_lock": ("handle_lock", "durability", "failing_calls", "growth", "relocation"),
    "idempotency": ("idempotency",),
    "integrity": ("integrity", "log"),
    "locks": ("locks", "open"),
    "log": (
        "backup",
        "durability",
        "erasure",
        "failing_calls",
        "following",
        "handle_lock",
        "idempotency",
        "large_batches",
        "log",
        "log_state",
        "processes",
        "recent",
        "recovery",
        "relocation",
        "salvage",
        "writer",
    ),
    "log_state": (
        "log_state",
        "following",
        "handle_lock",
        "log",
        "relocation",
        "recovery",
        "unfinished_flips",
    ),
    "memory_storage": ("storage", "locks", "open"),
    "open": ("open", "create", "growth", "relocation", "salvage"),
    "recovery": (
        "recovery",
        "cuts",
        "erasure",
        "growth",
        "large_batches",
        "unfinished_flips",
        "writer",
    ),
    "relocation": ("relocation",),
    "ring": ("ring",),
    "storage": ("storage", "failing_calls", "open"),
    "writer": (
        "cuts",
        "durability",
        "failing_calls",
        "growth",
        "idempotency",
        "large_batches",
        "log",
        "log_state",
        "recovery",
        "relocation",
        "unfinished_flips",
        "writer",
    ),
}
"""The files of tests/engine by module, without what their names begin with."""


def paths_about(modules: Iterable[str]) -> list[str]:
    """Return the paths of the tests that are about any of these modules."""
    names = {name for module in modules for name in ABOUT[module]}
    return [f"tests/engine/test_{name}.py" for name in sorted(names)]
