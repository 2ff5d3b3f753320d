"""Source lines: the short line that names the source of a frame."""

from cerata.retrieval.context.imitation import on_one_line

from .frames import Frame

_NAME_SIZE = 120
"""Most characters of a title or a place in a source."""

_PARTS_SHOWN = 2
"""Parts of a file's path that a source shows: the names of its folder and of the file."""


def source_line(frame: Frame) -> str:
    """Return a frame's id, title, place and day; see `Store.source_of`."""
    parts = [f"#{frame.id}"]
    title = on_one_line(frame.title or "")
    place = on_one_line(frame.uri or "")
    if place.startswith("/") and place.count("/") > _PARTS_SHOWN:
        place = "…/" + "/".join(place.split("/")[-_PARTS_SHOWN:])
    if title:
        parts.append(_clipped(title, title[: _NAME_SIZE - 1].rstrip() + "…"))
    if place and place != title:
        parts.append(_clipped(place, "…" + place[1 - _NAME_SIZE :].lstrip()))
    parts.append(frame.created.date().isoformat())
    return " · ".join(parts)


def _clipped(name: str, short: str) -> str:
    return name if len(name) <= _NAME_SIZE else short
