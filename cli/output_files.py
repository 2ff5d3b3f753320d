"""Output files that a user names: written whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cerata.engine.errors import Conflict, InvalidInput, NotFound
from cerata.memory.interchange.made_files import create_made_file
from cerata.packs.plots.canvas import FORMS, Form


@contextmanager
def new_file(name: str, memory: str | None) -> Generator[IO[bytes]]:
    """Open a file that appears under its name when it is complete, and never replaces another file.

    Each file here has the mode of the memory at the path ``memory`` (`create_made_file`).

    Raises:
        Conflict: the name exists.
        NotFound: the folder of the name does not exist.
    """
    check_new(name)
    path = Path(name)
    beside = _beside(path)
    try:
        with create_made_file(beside, memory) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError as error:
            raise _taken(name) from error
    finally:
        beside.unlink(missing_ok=True)


def check_new(name: str) -> None:
    """Raise `Conflict` if a name exists, and `NotFound` if its folder does not."""
    path = Path(name)
    if path.exists():
        raise _taken(name)
    if not path.parent.is_dir():
        raise NotFound(
            "The folder of the new file does not exist",
            where=name,
            remedy="Create the folder, or pass the name of a file in another.",
        )


def _taken(name: str) -> Conflict:
    return Conflict(f"{name} exists already", remedy="Pass the name of a new file.")


def write_picture(name: str, picture: bytes, memory: str | None) -> None:
    """Write a picture, and replace any file of that name.

    Raises:
        InvalidInput: the name is of a folder, pipe, socket or device.
    """
    path = Path(name)
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{name} is not a regular file", remedy="Pass the name of a new file.")
    beside = _beside(path)
    try:
        # A new file beside it, so that no existing device or pipe is opened.
        with create_made_file(beside, memory) as file:
            file.write(picture)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_page(name: str, page: str, memory: str | None) -> None:
    """Write a page of HTML, and replace any file of that name; see `write_picture`."""
    write_picture(name, page.encode(), memory)


def form_of(name: str) -> Form:
    """Return the form of a picture by its file's name. Raises `InvalidInput`."""
    for form in FORMS:
        if name.lower().endswith(f".{form}"):
            return form
    raise InvalidInput(
        f"The name of a picture must end in .svg or .png, not be {name}",
        remedy="Pass a name such as facts.svg.",
    )


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.partial")
