"""Source lines: the short line that names the source of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerata.retrieval.context.imitation import on_one_line

if TYPE_CHECKING:
    from .frames import Frame

_NAME_SIZE = 120
"""Most characters of a title or a place in a source."""

_PARTS_SHOWN = 2
"""Parts of a file's path that a source shows: the names of its folder and of the file."""


def source_line(frame: Frame) -> str:
    """Return a frame's id, title, place and day; see `Store.source_of`."""
    return " · ".join([f"#{frame.id}", *_names(frame), _day(frame)])


def heading_of(frame: Frame) -> str:
    """Return the line that turns of a day share: the day, then title and place if a turn has one.

    The day comes first, so that no title passes for a heading.
    """
    return " · ".join([_day(frame), *_names(frame)])


def speaker_of(frame: Frame) -> str:
    """Return a frame's role on one line; empty without one."""
    role = on_one_line(frame.role or "")
    return _clipped(role, role[: _NAME_SIZE - 1].rstrip() + "…")


def _day(frame: Frame) -> str:
    return frame.created.date().isoformat()


def _names(frame: Frame) -> list[str]:
    """Return the title and the place."""
    parts: list[str] = []
    title = on_one_line(frame.title or "")
    place = on_one_line(frame.uri or "")
    if place.startswith("/") and place.count("/") > _PARTS_SHOWN:
        place = "…/" + "/".join(place.split("/")[-_PARTS_SHOWN:])
    if title:
        parts.append(_clipped(title, title[: _NAME_SIZE - 1].rstrip() + "…"))
    if place and place != title:
        parts.append(_clipped(place, "…" + place[1 - _NAME_SIZE :].lstrip()))
    return parts


def _clipped(name: str, short: str) -> str:
    return name if len(name) <= _NAME_SIZE else short
