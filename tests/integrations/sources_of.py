"""The files that the real packages wrote: those kept here, or newer ones that CI made."""

import os
from pathlib import Path

import zstandard

FOLDER = Path(os.environ.get("CERATA_SOURCES") or Path(__file__).parent / "sources")

FILES = sorted(path.name.removesuffix(".zst") for path in FOLDER.glob("*.zst"))


def kind_of(name: str) -> str:
    """Return the kind of a file, from its name: KIND-NUMBER.SUFFIX."""
    return name.rpartition("-")[0]


def source(name: str, folder: Path) -> Path:
    """Write a file to a folder, as its package left it."""
    path = folder / name
    data = (FOLDER / f"{name}.zst").read_bytes()
    path.write_bytes(zstandard.ZstdDecompressor().decompress(data))
    return path
