"""Which tests are about which module of the core: they have to notice its mutants."""

from collections.abc import Iterable

ABOUT: dict[str, tuple[str, ...]] = {
    "creation": ("creation", "opening"),
    "file": ("file", "creation", "growth", "opening"),
    "format.checks": ("file",),
    "format.extent": ("layouts", "file", "growth"),
    "format.footer": ("layouts", "file", "growth"),
    "format.page": ("layouts", "file", "growth"),
    "format.record": ("layouts", "file", "growth"),
    "hold": ("hold", "durability", "failing_calls", "growth", "moved"),
    "idempotency": ("idempotency",),
    "integrity": ("integrity", "log"),
    "locks": ("locks", "opening"),
    "log": (
        "backup",
        "durability",
        "erasure",
        "failing_calls",
        "following",
        "hold",
        "idempotency",
        "large_batches",
        "log",
        "moved",
        "position",
        "processes",
        "recovery",
        "salvage",
        "writer",
    ),
    "memory": ("storage", "locks", "opening"),
    "moving": ("moved",),
    "opening": ("opening", "creation", "growth", "moved", "salvage"),
    "poison": ("durability",),
    "position": ("position", "following", "hold", "log", "moved", "recovery", "unfinished_flips"),
    "recovery": (
        "recovery",
        "cuts",
        "erasure",
        "growth",
        "large_batches",
        "unfinished_flips",
        "writer",
    ),
    "ring": ("ring",),
    "storage": ("storage", "failing_calls", "opening"),
    "writer": (
        "cuts",
        "durability",
        "failing_calls",
        "growth",
        "idempotency",
        "large_batches",
        "log",
        "moved",
        "position",
        "recovery",
        "unfinished_flips",
        "writer",
    ),
}
"""The files of tests/engine by module, without what their names begin with."""


def paths_about(modules: Iterable[str]) -> list[str]:
    """Return the paths of the tests that are about any of these modules."""
    names = {name for module in modules for name in ABOUT[module]}
    return [f"tests/engine/test_{name}.py" for name in sorted(names)]
