"""Texts, counts and sizes as people read them."""


def clipped(text: str, size: int) -> str:
    """Return a text on one line of at most ``size`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1].rstrip() + "…"


def column(text: str, width: int) -> str:
    """Return a text as a column: at least one space follows it, also if it is too long.

    >>> column("put", 6) + "a", column("supersede", 6) + "a"
    ('put   a', 'supersede a')
    """
    return f"{text:<{width - 1}} "


def counted(count: int, thing: str) -> str:
    """Return a count for people: ``1 frame``, ``2,000 frames``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def bytes_text(size: int) -> str:
    """Return a size for people: ``1.4 MiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
