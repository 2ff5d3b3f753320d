"""Files that are made from a memory: only readers of the memory can read them.

Owns the mode of each such file: exports, pages, pictures and profiles. Copies of a memory get their
mode from the storage (`cerata.engine.create`).
"""

import os
import stat
from pathlib import Path
from typing import IO

_OWNER_ONLY = 0o600
_READ_AND_WRITE = 0o666


def create_made_file(path: Path, memory: str | None) -> IO[bytes]:
    """Create a file with the mode of a memory; an existing file raises `FileExistsError`.

    No other user can open the file before it has its mode. Without a memory on the disk only the
    owner can read it.

    Args:
        path: The file to create.
        memory: The path of the memory; None for a memory without a file.
    """
    mode = _OWNER_ONLY if memory is None else _mode_of(memory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.fdopen(os.open(path, flags, mode & _OWNER_ONLY), "wb")
    try:
        # The mask of the process may have taken bits; those of the group and the world are missing.
        os.fchmod(file.fileno(), mode)
    except BaseException:
        file.close()
        raise
    return file


def _mode_of(memory: str) -> int:
    try:
        return stat.S_IMODE(os.stat(memory).st_mode) & _READ_AND_WRITE
    except OSError:
        return _OWNER_ONLY
