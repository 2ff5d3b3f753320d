"""The tables of verbs in docs/command-line.md, made from the verbs.

    python -m tools.command_line_page      # writes them

tests/cli/test_page.py compares the page with them.
"""

from pathlib import Path
from typing import Final

from cerata.cli.verbs import groups, names_in, renamed_verbs, verbs_of
from cerata.engine.verbs import EVERYDAY, Arg, Verb

PAGE: Final = Path(__file__).parents[1] / "docs" / "command-line.md"
_START: Final = "<!-- The tables of verbs: python -m tools.command_line_page -->\n"
_END: Final = "<!-- The end of the tables. -->\n"
_NEW: Final = ("judge", "talk")
"""Verbs that no earlier build had."""

_COUNTS: Final = {None: "{}", "?": "[{}]", "*": "[{}…]", "+": "{}…"}


def tables() -> str:
    """Return the tables: the verbs of each group, then the verbs of earlier builds."""
    return "\n".join([*map(_group, groups()), _old_names()])


def section(text: str) -> str:
    """Return the part of the page that has the tables."""
    return text.partition(_START)[2].partition(_END)[0]


def _group(group: str) -> str:
    rows = "".join(_row(verb) for verb in verbs_of(group))
    title = group.capitalize()
    return f"### {title}\n\n| verb | effect | options |\n|---|---|---|\n{rows}"


def _row(verb: Verb) -> str:
    arguments = [each for each in verb.arguments if isinstance(each, Arg)]
    usage = " ".join([verb.words, *map(_argument, arguments)])
    name = f"[`{usage}`]({verb.page})" if verb.page else f"`{usage}`"
    options = [each.names[-1] for each in verb.arguments if not isinstance(each, Arg)]
    listed = ", ".join(f"`{option}`" for option in options)
    return f"| {name} | {verb.summary} | {listed} |\n"


def _argument(argument: Arg) -> str:
    choices = "" if callable(argument.choices) else "/".join(argument.choices or ())
    name = argument.metavar or choices or argument.name.upper()
    return _COUNTS[argument.times].format(name)


def _old_names() -> str:
    grouped = {
        name: f"{group} {name}"
        for group in groups()
        for name in names_in(group)
        if group != EVERYDAY and name not in (*names_in(EVERYDAY), *_NEW)
    }
    olds = {**grouped, **renamed_verbs(), "facts": "facts list"}
    rows = "".join(f"| `{old}` | `{olds[old]}` |\n" for old in sorted(olds))
    return (
        "### Old names\n\nA verb of an earlier build that has another name now is an error that "
        "names the new verb.\n`supersede ID TEXT` is `update ID --text TEXT`.\n\n"
        f"| earlier | now |\n|---|---|\n{rows}"
    )


def main() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, start, rest = text.partition(_START)
    _, end, after = rest.partition(_END)
    PAGE.write_text(before + start + tables() + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
