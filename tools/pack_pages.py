"""The pages of packs in docs/index.md and in the site, made from `Pack.docs`.

    python -m tools.pack_pages      # writes docs/index.md

`site_pages` takes the pages into the site; tests/test_docs.py compares the index with them.
"""

import textwrap
from pathlib import Path
from typing import Final

import cerata
from cerata.engine.packs import shipped_packs

DOCS: Final = Path(__file__).parents[1] / "docs"
INDEX: Final = DOCS / "index.md"
_START: Final = "<!-- The pages of packs: python -m tools.pack_pages -->\n"
_END: Final = "<!-- The end of the pages. -->\n"

_ROOMS: Final = {
    "agents": "Agents",
    "integrations": "Bridges",
    "packs": "Features",
    "fault_injection": "Crash tests",
}
"""The rooms of packs, and the heading of the pages of each."""


def pages() -> dict[str, list[str]]:
    """Return the pages of the packs of each room, by heading, in the order of `cerata.PACKS`."""
    found: dict[str, list[str]] = {heading: [] for heading in _ROOMS.values()}
    for name, pack in zip(cerata.PACKS, shipped_packs(), strict=True):
        found[_ROOMS[name.partition(".")[0]]] += pack.docs
    return found


def title_of(page: str) -> str:
    """Return the title of a page, its first heading."""
    first, _, _ = (DOCS / page).read_text(encoding="utf-8").partition("\n")
    return first.removeprefix("# ")


def lines() -> str:
    """Return the lines of the index: an entry for each room."""
    entries = (
        f"- {heading}: {', '.join(f'[{title_of(page)}]({page})' for page in listed)}."
        for heading, listed in pages().items()
    )
    return "".join(
        textwrap.fill(entry, 120, subsequent_indent="  ", break_on_hyphens=False) + "\n"
        for entry in entries
    )


def section(text: str) -> str:
    """Return the part of the index that has the lines."""
    return text.partition(_START)[2].partition(_END)[0]


def main() -> None:
    """Write the lines into the index."""
    before, start, rest = INDEX.read_text(encoding="utf-8").partition(_START)
    _, end, after = rest.partition(_END)
    INDEX.write_text(before + start + lines() + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
