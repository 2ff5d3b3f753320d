"""Coverage-guided search for hostile files, by atheris: ``pip install '.[fuzz]'``.

``python -m tests.crash.sweeps.fuzz FOLDER -max_total_time=600`` stores its inputs in the
folder; the options are libFuzzer's. `hostile_files` defines a hostile file, and the permitted
results of reading it.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

_PIECE = 12
"""Bytes that are read as one patch: an offset of 4, and 8 bytes of content."""


def explore(arguments: Sequence[str]) -> None:
    """Let atheris search for patches with a forbidden effect, until the user stops it."""
    # By name: the types that are installed describe another version.
    atheris: Any = importlib.import_module("atheris")
    # Import the engine under instrumentation, which follows the path of a file through it.
    with atheris.instrument_imports(include=["cerata.engine"]):
        from .hostile_files import Patch, patched, read_everything, specimen

    decoder = msgspec.msgpack.Decoder(list[Patch])

    def read_hostile(data: bytes) -> None:
        try:
            patches = decoder.decode(data)
        except (msgspec.DecodeError, RecursionError):
            pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
            patches = [Patch(int.from_bytes(piece[:4], "little"), piece[4:]) for piece in pieces]
        read_everything(patched(patches))

    read_everything(specimen())
    atheris.Setup([sys.argv[0], *arguments], read_hostile)
    atheris.Fuzz()


if __name__ == "__main__":
    explore(sys.argv[1:])
