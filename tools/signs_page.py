"""Write docs/signs.md from the lexicon, so that the page has each sign with its sentences."""

import sys
from pathlib import Path

from cerata.agents.turns.lexicon import PATTERNS, SIGNS, lexicon_file

PAGE = Path(__file__).parent.parent / "docs" / "signs.md"

_HEAD = """# Signs and patterns

The projection `messages` counts these signs and patterns in each message of a session. All are
unvalidated heuristics for English. A sign counts the places at which one of its phrases starts, as
whole words, up to 255. A message of the user has a pattern or not. The phrases are in
`agents/turns/english.toml`; a change of them is another version of the lexicon, and so of
the projection.
"""
_SIGNS = "| sign | whose messages | has it | lacks it |"
_PATTERNS = "| pattern | has it | lacks it |"


def page() -> str:
    """Return the text of the page."""
    lexicon = lexicon_file()
    lines = [
        _HEAD,
        "## Signs",
        "",
        "| sign | whose messages | has it | lacks it |",
        "|---|---|---|---|",
    ]
    for name in SIGNS:
        sign = lexicon.signs[name]
        lines.append(f"| `{name}` | {sign.of} | {sign.has} | {sign.lacks} |")
    lines += ["", "## Patterns", "", _PATTERNS, "|---|---|---|"]
    for name in PATTERNS:
        pattern = lexicon.patterns[name]
        lines.append(f"| `{name}` | {pattern.has} | {pattern.lacks} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
