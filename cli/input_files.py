"""Input files that a user names; ``-`` is standard input."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from cerata.engine.errors import InvalidInput, NotFound
from cerata.memory.ingest.document import open_regular

STREAM: Final = "-"


@contextmanager
def opened_input(name: str, remedy: str) -> Generator[tuple[IO[bytes], int]]:
    """Open a file; yield it and its size in bytes, 0 if unknown.

    Args:
        name: the file
        remedy: the advice if it does not exist

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not regular, or standard input is closed.
    """
    if name == STREAM:
        if sys.stdin is None:
            raise InvalidInput("Standard input is closed", remedy="Pass a file.")
        yield sys.stdin.buffer, 0
        return
    try:
        file = open_regular(Path(name))
    except FileNotFoundError as error:
        raise NotFound("The file does not exist", where=name, remedy=remedy) from error
    with file:
        yield file, os.fstat(file.fileno()).st_size
