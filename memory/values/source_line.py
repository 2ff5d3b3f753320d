"""Source lines: the short line that names the source of a frame."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cerata.engine.instants import to_datetime
from cerata.retrieval.context.imitation import on_one_line

if TYPE_CHECKING:
    from .frames import Frame

DAY_US: Final = 86_400_000_000

_NAME_SIZE: Final = 120
"""Most characters of a title or a place in a source."""

_PARTS_SHOWN: Final = 2
"""Parts of a file's path that a source shows: the names of its folder and of the file."""


def source_line(frame: Frame) -> str:
    """Return a frame's id, title, place and day; see `Store.files.source`."""
    return source_text(frame.id, frame.title, frame.uri, frame.created.date().isoformat())


def source_text(number: int, title: str | None, uri: str | None, day: str) -> str:
    """Return the source line of a frame with this id and day."""
    if not title and not uri:
        return f"#{number} · {day}"
    return " · ".join([f"#{number}", *_names(title, uri), day])


def heading_text(title: str | None, uri: str | None, day: str) -> str:
    """Return the line that turns of a day share: the day, then title and place if a turn has one.

    The day comes first, so that no title passes for a heading.
    """
    return " · ".join([day, *_names(title, uri)]) if title or uri else day


@lru_cache(256)
def speaker_text(role: str) -> str:
    """Return a role on one line."""
    role = on_one_line(role)
    return _clipped(role, role[: _NAME_SIZE - 1].rstrip() + "…")


@lru_cache(4096)
def day_text(day: int) -> str:
    """Return the date of a day, counted from 1970-01-01."""
    return to_datetime(day * DAY_US).date().isoformat()


def _names(title: str | None, uri: str | None) -> list[str]:
    """Return the title and the place."""
    parts: list[str] = []
    title = on_one_line(title or "")
    place = on_one_line(uri or "")
    if place.startswith("/") and place.count("/") > _PARTS_SHOWN:
        place = "…/" + "/".join(place.split("/")[-_PARTS_SHOWN:])
    if title:
        parts.append(_clipped(title, title[: _NAME_SIZE - 1].rstrip() + "…"))
    if place and place != title:
        parts.append(_clipped(place, "…" + place[1 - _NAME_SIZE :].lstrip()))
    return parts


def _clipped(name: str, short: str) -> str:
    return name if len(name) <= _NAME_SIZE else short
