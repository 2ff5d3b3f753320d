"""Files that a user names to be written: whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cerata.engine.errors import Conflict, InvalidInput
from cerata.memory.pictures.canvas import FORMS, Form


@contextmanager
def new_file(name: str) -> Generator[IO[bytes]]:
    """Open a file that appears under its name when all is written, and never in another's place.

    Raises:
        Conflict: something has the name.
    """
    path = Path(name)
    beside = _beside(path)
    taken = Conflict(f"There is something at {name} already", remedy="Name a new file.")
    if path.exists():
        raise taken
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError as error:
            raise taken from error
    finally:
        beside.unlink(missing_ok=True)


def write_picture(name: str, picture: bytes) -> None:
    """Write a picture, in the place of an earlier one of the name.

    Raises:
        InvalidInput: the name is of a folder, pipe, socket or device.
    """
    path = Path(name)
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{name} is not a file", remedy="Name a new file.")
    beside = _beside(path)
    try:
        # A new file, so that nothing that has its name is opened.
        with beside.open("xb") as file:
            file.write(picture)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def form_of(name: str) -> Form:
    """Return the form of a picture by its file's name. Raises `InvalidInput`."""
    for form in FORMS:
        if name.lower().endswith(f".{form}"):
            return form
    raise InvalidInput(f"{name} names no picture", remedy="End it in .svg or .png.")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.partial")
