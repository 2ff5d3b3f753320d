"""Prose: how far docstrings, comments, messages and pages are from plain technical English.

Owns the patterns, each with a ceiling per 1,000 words, and the share of vague names. Counts
docstrings, comments, string literals of four words or more, and Markdown without code and quotes.
``python -m tests.prose [PATH...]`` prints the measurement; ``--list PATH`` prints each match.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

ROOMS = (
    *("engine", "projections", "replay", "retrieval", "memory", "agents", "fault_injection", "cli"),
    *("cerata", "benchmarks", "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
)
"""The folders and pages whose prose is measured."""

PATTERNS = {
    "clause as subject": (
        (
            r"(?:^|(?<=[.!;:]\s)|(?<=\n\n))\s*"
            r"(?:what|whatever|who|whoever|whose|whether|nor|of an?\b|of the)\b[^.?]*(?![^.]*\?)"
        ),
        0.0,
    ),
    "dialect": (
        (
            r"\b(?:whoever|whatever|nobody|somebody|everybody|anybody|others|business"
            r"|mends?|mended|mending|anew|dear|meanwhile)\b"
        ),
        0.0,
    ),
    "empty passive": (
        r"\b(?:(?:is|are|was|were) (?:told|said|asked|none)|all that|those that|one that)\b",
        0.5,
    ),
    "say and tell": (r"\b(?:say|says|said|tell|tells|told|telling)\b", 1.0),
    "what as a clause": (r"\bwhat\b(?![^.]*\?)", 2.0),
    "who": (r"\b(?:who|whom|one another|nowhere)\b", 0.5),
    "where for if": (
        r"\bwhere (?:it|they|that|there|one|nothing|none|no|some|several|not|a|an|the)\b",
        1.0,
    ),
    "own": (r"\bown\b", 0.5),
    "stands for is": (r"\bstands?\b", 0.3),
    "one as a pronoun": (
        (
            r"\b(?:the|this|that|each|which|no|any|every|another|old|new|other|newer|older|first"
            r"|last|second) one\b|\bone of (?:it|them|these|those)\b|\bones\b"
            r"|\bone (?:is|was|has|may|can|must)\b"
        ),
        1.5,
    ),
    "it": (r"\bit\b", 12.0),
}
"""Habits that technical prose does without: a pattern, and its ceiling per 1,000 words."""

VAGUE = frozenset(
    {
        *("one", "other", "others", "found", "given", "said", "told", "known", "wanted", "own"),
        *("every", "some", "both", "held", "asked", "shown", "made", "kept", "thing", "what"),
        *("done", "seen", "put", "gone"),
    }
)
"""Names that give no hint of the value."""

VAGUE_SHARE_MAX = 0.01
_TABLES = ("unicode_tables.py", "english.py")
_DATA = ("framing.py", "query_classifier.py", "mutants.py", "agent.py")
"""Modules whose strings are stored, compared or replaced, and so follow no rule of prose."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text for people, and the line on which it starts."""

    line: int
    text: str


def of_python(source: str, *, messages: bool = True) -> Iterator[Passage]:
    """Yield the docstrings, comments and, unless its strings are data, the messages of a module."""
    tree = ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        body: object = getattr(node, "body", None)
        if isinstance(body, list):
            for statement in cast("list[object]", body):
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    docstrings.add(id(statement.value))
                    if isinstance(statement.value.value, str):
                        yield Passage(statement.lineno, _without_code(statement.value.value))
        if messages and isinstance(node, ast.JoinedStr):
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            docstrings.update(id(part) for part in node.values)
            text = " X ".join(str(part) for part in parts)
            if _is_message(text):
                yield Passage(node.lineno, _without_code(text))
    for node in ast.walk(tree):
        if not messages or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in docstrings and _is_message(node.value):
            yield Passage(node.lineno, _without_code(node.value))
    block: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = re.sub(r"(?:noqa|type|pragma|pyright):.*", "", token.string.lstrip("#! "))
        if block and token.start[0] == last + 1:
            block.append(text)
        else:
            if block:
                yield Passage(start, _without_code("\n".join(block)))
            block, start = [text], token.start[0]
        last = token.start[0]
    if block:
        yield Passage(start, _without_code("\n".join(block)))


def of_markdown(source: str) -> Iterator[Passage]:
    """Yield a page, a paragraph at a time, without code and quotes."""
    page = re.sub(r"(?ms)^```.*?^```", lambda match: "\n" * match[0].count("\n"), source)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", page):
        if paragraph.strip():
            yield Passage(line, _without_code(re.sub(r"(?m)^\s*>.*$|^\s*[|*#-]+", "", paragraph)))
        line += paragraph.count("\n")


def _is_message(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 4 and " " in text.strip()


def _without_code(text: str) -> str:
    text = re.sub(r"(?m)^\s*(?:>>>|\.\.\.).*$", " ", text)
    return re.sub(r"``[^`]*``|`[^`\n]*`|\"[^\"\n]*\"|\]\([^)]*\)", " ", text)


def passages(path: Path) -> list[Passage]:
    """Return the texts for people of a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return list(of_markdown(source))
    return list(of_python(source, messages=path.name not in _DATA))


def files_of(folders: Iterable[Path]) -> list[Path]:
    """Return the modules and pages below some folders, without tables of words."""
    files: set[Path] = set()
    for folder in folders:
        if folder.is_file():
            files.add(folder)
            continue
        for pattern in ("*.py", "*.md"):
            files.update(path for path in folder.rglob(pattern) if not path.is_symlink())
    return sorted(path for path in files if path.name not in _TABLES)


def matches(text: str, name: str) -> list[str]:
    """Return the places of a text that a pattern matches."""
    return [match[0].strip() for match in _COMPILED[name].finditer(text)]


_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, (pattern, _) in PATTERNS.items()}


def rates(files: Iterable[Path]) -> dict[str, float]:
    """Return the matches of each pattern per 1,000 words of the files."""
    words = 0
    counts = dict.fromkeys(PATTERNS, 0)
    for path in files:
        for passage in passages(path):
            words += len(re.findall(r"[A-Za-z']+", passage.text))
            for name in PATTERNS:
                counts[name] += len(matches(passage.text, name))
    return {name: 1000 * count / max(1, words) for name, count in counts.items()}


def vague_names(source: str) -> tuple[list[tuple[int, str]], int]:
    """Return the vague names that a module binds, with their lines, and the count of all names."""
    vague: list[tuple[int, str]] = []
    count = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name, line = node.id, node.lineno
        elif isinstance(node, ast.arg):
            name, line = node.arg, node.lineno
        else:
            continue
        count += 1
        if name.strip("_") in VAGUE:
            vague.append((line, name))
    return vague, count


def vague_share(files: Iterable[Path]) -> float:
    """Return the share of vague names among those that the modules bind."""
    vague = bound = 0
    for path in files:
        if path.suffix == ".py":
            names, count = vague_names(path.read_text(encoding="utf-8"))
            vague, bound = vague + len(names), bound + count
    return vague / max(1, bound)


def main() -> None:
    """Print the rates of each path, by default of each room; with ``--list`` each match."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--list"]:
        for path in files_of(map(Path, arguments[1:])):
            for passage in passages(path):
                for name in PATTERNS:
                    for match in matches(passage.text, name):
                        print(f"{path}:{passage.line}: {name}: {' '.join(match.split())[:60]}")
            if path.suffix == ".py":
                for line, vague in vague_names(path.read_text(encoding="utf-8"))[0]:
                    print(f"{path}:{line}: vague name: {vague}")
        return
    print(f"{'path':18}" + "".join(f"{name[:11]:>12}" for name in PATTERNS) + f"{'names':>9}")
    for room in arguments or ROOMS:
        files = files_of([Path(room)])
        row = "".join(f"{rate:>12.1f}" for rate in rates(files).values())
        print(f"{room[-18:]:18}{row}{100 * vague_share(files):>7.1f} %")


if __name__ == "__main__":
    main()
