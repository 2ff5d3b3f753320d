"""docs/format.md taken apart: its tables by heading, its CDDL, and its worked example."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format.md"
EXAMPLE = re.compile(
    r"<!-- example: made by tests/format/specimen\.py -->\n\n(.*?)\n\n<!-- end of example -->",
    re.DOTALL,
)

Row = dict[str, str]


def text() -> str:
    return PAGE.read_text(encoding="utf-8")


def tables(heading: str) -> list[list[Row]]:
    """Return the tables under a heading, up to the next heading of any level."""
    found: list[list[Row]] = []
    inside, fenced = False, False
    names: list[str] | None = None
    for line in text().splitlines():
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("#"):
            inside = line.lstrip("#").strip() == heading
        if not inside or fenced or not line.startswith("|"):
            names = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if names is None:
            names = cells
            found.append([])
        elif set(line) - set("|-"):
            found[-1].append(dict(zip(names, cells, strict=True)))
    return found


def table(heading: str) -> list[Row]:
    """Return the one table under a heading."""
    (found,) = tables(heading)
    assert found
    return found


def cddl() -> str:
    """Return all CDDL of the page: one set of rules."""
    return "\n".join(re.findall(r"^```cddl\n(.*?)^```$", text(), re.DOTALL | re.MULTILINE))


def rules() -> set[str]:
    """Return the names that the CDDL defines."""
    return set(re.findall(r"^([a-zA-Z][\w.-]*) = ", cddl(), re.MULTILINE))


def example() -> list[str]:
    """Return the worked example's lines."""
    match = EXAMPLE.search(text())
    assert match is not None
    return match[1].splitlines()


def number(cell: str) -> int:
    return int(cell.replace(",", ""))
