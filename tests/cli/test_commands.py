"""Every ``cerata …`` command that a page, a message, an example or a help names is one that parses.

The verb and its options are checked; arguments in capitals are placeholders.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cerata.cli.verbs import groups

from .conftest import verbs, words_of

ROOT: Final = Path(__file__).parents[2]

COMMAND: Final = re.compile(
    r"(?<!from )(?<!import )(?<![\w./\[(-])cerata((?: (?:-f|--file|--pack) \S+)*) ([a-z][a-z-]*)"
    r"((?: [^`\n|#;&<>]*)?)"
)
"""A command; its verb, and the words until a mark of the shell, a comment or the end of a quote."""

PROSE: Final = frozenset(("format", "is", "has", "alone", "itself", "requires", "command"))
"""Words that follow the name of the package in a sentence."""

FOREIGN: Final = re.compile(r"import cerata|pip install|-s user cerata|<cerata ")

OTHERS: Final = {
    "cerata garden watered --pack garden": "the page has the pack that brings the verb",
    "cerata bench": "the changelog has its new name",
    "cerata mcp": "the changelog has its new name",
    "cerata forget": "the changelog has the error of this name",
}


def named_commands(text: str) -> Iterator[str]:
    """Yield the commands in a text, from the verb on."""
    for match in COMMAND.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        if match[2] not in PROSE and not FOREIGN.search(text[start : match.end(2)]):
            quote = text[match.start() - 1 : match.start()]
            rest = match[3].partition(quote)[0] if quote in ("'", '"', "`") else match[3]
            yield f"{match[2]}{rest}"


def fault_of(command: str, known: dict[str, frozenset[str]]) -> str | None:
    """Return the fault of a command: an unknown verb or option."""
    words = re.findall(r"'[^']*'|\"[^\"]*\"|\S+", command)
    bare = [word.rstrip(".,:;)'\"") for word in words]
    if bare[0] in groups() and (bare[1:] == [] or bare[1] in ("--help", "VERB")):
        return None
    name = words_of(bare)
    if name not in known:
        return "no verb"
    options = {word.partition("=")[0] for word in bare if word[:1] == "-"}
    unknown = options - known[name] - {"-", "--", "--help", "-h"}
    return f"no option {', '.join(sorted(unknown))}" if unknown else None


def known_options() -> dict[str, frozenset[str]]:
    return {words: frozenset(one._option_string_actions) for words, one in verbs().items()}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    paths = [ROOT / name for name in listed.stdout.split()] or [
        path for pattern in patterns for path in ROOT.glob(pattern.replace("/*", "/**/*"))
    ]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a file: a page whole, and of a program its strings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield text
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )


PAGES: Final = ("*.md", "docs/*.json", ".ci/run", "pyproject.toml")
PROGRAMS: Final = tuple(
    f"{folder}/*.py"
    for folder in (
        *("engine", "projections", "replay", "retrieval", "memory", "aio", "agents", "cli"),
        *("integrations", "packs", "fault_injection", "cerata", "benchmarks", "examples", "tools"),
    )
)


@pytest.mark.parametrize("patterns", [PAGES, PROGRAMS], ids=["pages", "programs"])
def test_every_named_command_parses(patterns: tuple[str, ...]) -> None:
    """A remedy that names a command of an earlier build is worse than none."""
    known = known_options()
    commands = {
        (path.relative_to(ROOT).as_posix(), command.strip())
        for path in tracked(*patterns)
        for text in texts_of(path)
        for command in named_commands(text)
    }
    assert len(commands) > 50
    faults = {
        place: fault
        for place in commands
        if (fault := fault_of(place[1], known)) and f"cerata {place[1]}" not in OTHERS
    }
    assert faults == {}


def test_a_wrong_command_is_found() -> None:
    """The rule above, seen failing."""
    known = known_options()
    text = "Run 'cerata verify'. See `cerata file verify --hed X`, `cerata -f a.cera frames`.\n"
    assert [fault_of(command, known) for command in named_commands(text)] == [
        "no verb",
        "no option --hed",
        "no verb",
    ]
    good = "'cerata file verify --head SEQ:ROOT' | `cerata facts --help`; import cerata\n"
    assert [fault_of(command, known) for command in named_commands(good)] == [None, None]
