"""The documentation: links resolve, examples run, and every command has a test.

A fenced block names its language, and one that shows a command or a program says in its info line
who runs it:

- ``pycon``: the examples run here as doctests;
- ``sh run`` and ``python run``: run here; the blocks of one page share a folder, in order; a second
  run of a program prints the same, except with ``once``;
- ``sh test=tests/test_x.py::test_y``: that test runs it;
- ``sh ci=name``: .ci/run takes the block from the page and runs it.
"""

import contextlib
import doctest
import importlib
import os
import pkgutil
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

import cerata
from cerata.engine.packs import shipped_packs
from tools import pack_pages, site_pages

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {"sh", "bash", "shell", "console", "python"}
BLOCK_SECONDS_MAX = 300


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it stands, its language, its marks, and its text."""

    page: Path
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def mark(self, name: str) -> str | None:
        """Return the value of ``name=value`` in the info line."""
        for mark in self.marks:
            key, equals, value = mark.partition("=")
            if key == name and equals:
                return value
        return None


def pages() -> list[Path]:
    """Return every Markdown page of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def tokens(page: Path) -> list[Token]:
    parser = MarkdownIt("commonmark").enable("table")
    return parser.parse(page.read_text(encoding="utf-8"))


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    for token in tokens(page):
        if token.type == "fence":
            language, *marks = token.info.split() or [""]
            line = token.map[0] + 1 if token.map else 0
            found.append(Block(page, line, language, tuple(marks), token.content))
    return found


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def name_of(value: object) -> str | None:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else None


# --- links ---------------------------------------------------------------------------------------


def inline(page: Path) -> Iterator[tuple[int, Token]]:
    for token in tokens(page):
        line = token.map[0] + 1 if token.map else 0
        for child in token.children or []:
            yield line, child


def anchors(page: Path) -> set[str]:
    """Return the fragments that a link may name: headings, as GitHub makes them, and ids."""
    found = set(re.findall(r'<a id="([^"]+)"></a>', page.read_text(encoding="utf-8")))
    parsed = tokens(page)
    for opening, content in pairwise(parsed):
        if opening.type == "heading_open":
            words = "".join(
                child.content
                for child in content.children or []
                if child.type in {"text", "code_inline"}
            )
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            count = 0
            while (name := f"{slug}-{count}" if count else slug) in found:
                count += 1
            found.add(name)
    return found


def broken_links(page: Path) -> list[str]:
    faults: list[str] = []
    for line, token in inline(page):
        target = token.attrGet("href") if token.type == "link_open" else None
        target = token.attrGet("src") if token.type == "image" else target
        if target is None or re.match(r"[a-z]+:", str(target)):
            continue
        path, _, fragment = str(target).partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists() or not goal.is_relative_to(ROOT):
            faults.append(f"line {line}: {target} leads nowhere")
        elif fragment and goal.suffix == ".md" and fragment not in anchors(goal):
            faults.append(f"line {line}: {target} names no heading")
    return faults


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_resolve(page: Path) -> None:
    """A reader who meets a dead link stops trusting the page."""
    assert broken_links(page) == []


def test_pages_and_links_were_found() -> None:
    """Guards the test above against finding nothing."""
    assert len(pages()) >= 6
    links = [token for page in pages() for _, token in inline(page) if token.type == "link_open"]
    assert len(links) >= 10


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule above, seen failing."""
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](none.md) [b](#two) [c](page.md#one) [d](../out.md)\n")
    assert broken_links(page) == [
        "line 3: none.md leads nowhere",
        "line 3: #two names no heading",
        "line 3: ../out.md leads nowhere",
    ]


def test_every_page_of_docs_is_in_the_reading_order() -> None:
    """A page that docs/index.md does not name is found by nobody."""
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / str(token.attrGet("href")).partition("#")[0]).resolve()
        for _, token in inline(index)
        if token.type == "link_open"
    }
    missing = {page for page in (ROOT / "docs").rglob("*.md") if page != index} - linked
    assert {page.relative_to(ROOT).as_posix() for page in missing} == set()


def test_the_index_has_the_pages_of_packs() -> None:
    """``python -m tools.pack_pages`` writes them anew; the site has them by the same function."""
    assert pack_pages.section(pack_pages.INDEX.read_text(encoding="utf-8")) == pack_pages.lines()
    config = SimpleNamespace(nav=["index.md", {"I build an agent": ["agents.md"]}])
    site_pages.on_config(config)
    added = [page for entry in config.nav[2:] for page in next(iter(entry.values()))]
    assert sorted(added) == sorted(
        page for pack in shipped_packs() for page in pack.docs if page != "agents.md"
    )
    assert all((pack_pages.DOCS / page).is_file() for page in added)


def test_the_index_begins_with_four_paths_of_five_pages() -> None:
    """A list of forty pages was no way to begin."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    header, _, *rows = [line for line in text.splitlines() if line.startswith("|")][:7]
    assert re.findall(r"I \w+", header) == ["I build", "I operate", "I contribute", "I audit"]
    assert [len(re.findall(r"\]\(", row)) for row in rows] == [4] * 5


# --- decisions and measurements ------------------------------------------------------------------

PARTS = ["Decision", "Why", "Rejected", "Measured by"]
"""The parts of a decision, in order; "Rejected" may be absent."""


def malformed_decisions(text: str) -> list[str]:
    """Return the headings of a page whose section has other parts than a decision."""
    faults: list[str] = []
    for section in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        parts = re.findall(r"^\*\*([A-Z][a-z ]+)\.\*\*", body, re.MULTILINE)
        if body.strip() and parts not in (PARTS, [name for name in PARTS if name != "Rejected"]):
            faults.append(heading)
    return faults


DECISION_LINES_MAX = 12


def long_decisions(text: str) -> list[str]:
    """Return the headings of the decisions that are too long, without blank lines."""
    sections = re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]
    lines = [[line for line in section.splitlines() if line.strip()] for section in sections]
    return [heading for heading, *body in lines if len(body) > DECISION_LINES_MAX]


def missing_files(text: str) -> set[str]:
    """Return the tests, benchmarks and modules that a page names and that do not exist."""
    paths = set(re.findall(r"\b(?:tests|benchmarks)/[\w/]+\.\w+", text))
    for module in re.findall(r"-m\s+((?:tests|benchmarks|cerata)(?:\.\w+)*)", text):
        path = module.removeprefix("cerata.").replace(".", "/")
        paths.add(f"{path}/__main__.py" if (ROOT / path).is_dir() else f"{path}.py")
    return {path for path in paths if not (ROOT / path).exists()}


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_every_decision_has_its_parts(page: Path) -> None:
    """A decision needs a reason to be revised, and a test or benchmark to be kept."""
    if page.name != "index.md":
        text = page.read_text(encoding="utf-8")
        assert "**Decision.**" in text
        assert malformed_decisions(text) == []
        assert long_decisions(text) == []


@pytest.mark.parametrize("page", [*DECISIONS, ROOT / "docs" / "measurements.md"], ids=name_of)
def test_files_of_decisions_and_measurements_exist(page: Path) -> None:
    """A moved test or benchmark would leave its page behind."""
    assert missing_files(page.read_text(encoding="utf-8")) == set()


def test_a_malformed_decision_is_found() -> None:
    """The two rules above, seen failing."""
    text = (
        "## Group\n\n### A\n\n**Decision.** x\n\n**Why.** y\n\n**Measured by.** "
        "`tests/none.py`, `python -m benchmarks.none`\n\n### B\n\n**Decision.** x\n"
    )
    assert malformed_decisions(text) == ["B"]
    assert long_decisions(text) == []
    assert long_decisions("## A\n\n" + "x\n" * 13 + "\n## B\n") == ["A"]
    assert missing_files(text) == {"tests/none.py", "benchmarks/none.py"}


# --- promises ------------------------------------------------------------------------------------

FUTURE = re.compile(r"\b(?:eras(?:es?|ing|ures?))\b(?!`)", re.IGNORECASE)
ADMISSION = re.compile(
    r"\byet\b|\bis not\b|\bof a TOC\b|\breserved\b|\bbefore\b.*\berasure\b|compaction\.md#erasure",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"no erasure yet|erasure is not built|no compaction|file only grows|shrinks with no"
    r"|never shrinks|nothing can be erased",
    re.IGNORECASE,
)
INTERNAL = {"compaction.md", "format.md", "reliability.md", "measurements.md", "fault-injection.md"}
"""Pages that define erasure, or speak of it as of an event in the log."""


def promises(text: str) -> list[str]:
    """Return the paragraphs and rows that speak of an erasure without its limits.

    The limits are those of [compaction](compaction.md#erasure), which a paragraph may link.
    """
    parts = re.split(r"\n\n|\n(?=[|#-])", text)
    return [part for part in parts if FUTURE.search(part) and not ADMISSION.search(part)]


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "README.md",
        *(page for page in (ROOT / "docs").glob("*.md") if page.name not in INTERNAL),
    ],
    ids=name_of,
)
def test_no_page_promises_a_removal_that_does_not_exist(page: Path) -> None:
    """A user planned with an erasure of a person, which the docs spoke of and no call offers."""
    assert promises(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.name != "CHANGELOG.md"], ids=name_of
)
def test_no_page_denies_the_erasure_that_exists(page: Path) -> None:
    """Nine pages said that no byte leaves a file; `compact(horizon=)` erases contents.

    tests/memory/test_given_up.py reads the bytes.
    """
    assert DENIAL.findall(" ".join(page.read_text(encoding="utf-8").split())) == []


def test_a_promise_is_found() -> None:
    """The rule above, seen failing."""
    text = "An erasure.\n\n- No erasure yet.\n- A compaction.\n- A call erases it.\n"
    assert promises(text) == ["An erasure.", "- A call erases it.\n"]
    assert promises("A call [erases](compaction.md#erasure) it.") == []
    assert DENIAL.search(text)


# --- glossary ------------------------------------------------------------------------------------


def words_defined(glossary: str) -> list[str]:
    """Return the words in the first column of the tables of a glossary."""
    rows = re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)
    return [word for row in rows if row not in {"word", "---"} for word in row.split(", ")]


def test_the_glossary_defines_each_word_once() -> None:
    """Two definitions of a word drift apart."""
    words = words_defined((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert len(words) >= 80
    assert sorted(words) == sorted(set(words))


def test_a_word_with_two_definitions_is_found() -> None:
    """The rule above, seen failing."""
    table = "| word | meaning |\n|---|---|\n| hop, path | a |\n| seq | b |\n| path | c |\n"
    assert words_defined(table) == ["hop", "path", "seq", "path"]


# --- blocks --------------------------------------------------------------------------------------


def fault_of(block: Block) -> str | None:
    """Return what is wrong with the marks of a block, or None."""
    if not block.language:
        return "names no language"
    if block.language not in COMMANDS:
        return None
    if "run" in block.marks and block.language in {"sh", "python"}:
        return None
    if step := block.mark("ci"):
        wanted = f"readme_command {step}"
        script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        return None if wanted in script else f".ci/run has no '{wanted}'"
    if test := block.mark("test"):
        path, _, name = test.partition("::")
        source = ROOT / path
        known = source.is_file() and f"def {name}(" in source.read_text(encoding="utf-8")
        return None if name and known else f"there is no test {test}"
    return "says not who runs it: run, test=… or ci=…"


def test_every_command_is_run_by_somebody() -> None:
    """A command that nobody runs stops working unseen."""
    faults = {block.place: fault for block in all_blocks() if (fault := fault_of(block))}
    assert faults == {}
    assert any(block.language in COMMANDS for block in all_blocks())


@pytest.mark.parametrize(
    ("info", "good"),
    [
        ("sh", False),
        ("", False),
        ("sh test=tests/test_docs.py::test_nothing_of_the_kind", False),
        ("sh test=tests/test_docs.py::test_links_resolve", True),
        ("sh ci=no-such-step", False),
        ("python run", True),
        ("text", True),
    ],
)
def test_a_block_without_a_runner_is_found(info: str, good: bool) -> None:
    """The rule above, seen failing and passing."""
    language, *marks = info.split() or [""]
    block = Block(ROOT / "README.md", 1, language, tuple(marks), "true\n")
    assert (fault_of(block) is None) is good


def test_readme_gives_the_two_commands_that_ci_runs() -> None:
    """The newcomer's way and the machine's way are one."""
    steps = [block.mark("ci") for block in blocks(ROOT / "README.md") if block.mark("ci")]
    assert steps == ["tour", "tests"]


def shell_environment(folder: Path) -> dict[str, str]:
    """Return an environment whose ``cerata`` and ``python`` are those of this checkout."""
    bin_folder = folder / ".bin"
    bin_folder.mkdir(exist_ok=True)
    for name, arguments in (("cerata", "-m cerata"), ("python", ""), ("python3", "")):
        script = bin_folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CERATA_")}
    return kept | {"PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def run_block(block: Block, folder: Path) -> str:
    """Run one block in ``folder``, and return its output; the test fails if the block fails."""
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    if block.language == "python":
        command = [sys.executable, "-W", "error", "-c", block.text]
    run = subprocess.run(
        command,
        cwd=folder,
        env=shell_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=BLOCK_SECONDS_MAX,
    )
    if run.returncode:
        pytest.fail(f"{block.place} exited with {run.returncode}\n{block.text}\n{run.stdout}")
    return run.stdout


def to_run(page: Path) -> list[Block]:
    return [block for block in blocks(page) if "run" in block.marks]


def output_of(page: Path) -> dict[int, str]:
    """Return the output that a page shows right below a program, by the program's line."""
    return {
        program.line: output.text
        for program, output in pairwise(blocks(page))
        if program.language == "python"
        and "run" in program.marks
        and output.language == "text"
        and output.line == program.line + program.text.count("\n") + 3
    }


def test_a_page_shows_what_its_program_prints() -> None:
    """A line of graph.md had another order than the program; the test above compares each."""
    shown = {page.name for page in pages() if output_of(page)}
    assert shown >= {"facts.md", "graph.md", "links.md"}


@pytest.mark.parametrize("page", [page for page in pages() if to_run(page)], ids=name_of)
def test_commands_and_programs_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """What a page shows can be typed, in the page's order."""
    shown = output_of(page)
    for block in to_run(page):
        output = run_block(block, tmp_path)
        assert output == shown.get(block.line, output), block.place


@pytest.mark.slow("runs the programs of all pages twice")
@pytest.mark.parametrize("page", [page for page in pages() if to_run(page)], ids=name_of)
def test_a_program_of_a_page_prints_the_same_twice(page: Path, tmp_path: Path) -> None:
    """A program that appended to a file in the reader's folder printed other lines then."""
    for block in to_run(page):
        output = run_block(block, tmp_path)
        if block.language == "python" and "once" not in block.marks:
            assert run_block(block, tmp_path) == output, block.place


def test_programs_of_the_readme_print_the_same_twice(tmp_path: Path) -> None:
    """They appended to a file, so the second run printed what the comments deny."""
    programs = [block for block in to_run(ROOT / "README.md") if block.language == "python"]
    first, second = ([run_block(block, tmp_path) for block in programs] for _ in range(2))
    assert first == second
    index, agent, alice = first
    assert re.findall(r"Annoy|HNSW", index) == ["HNSW", "Annoy", "Annoy", "HNSW"]
    assert "$ref:weather.1" in agent
    assert "Booked for Friday." in agent
    assert [line.split()[-1] for line in alice.splitlines()] == ["rome", "paris", "rome"]


def test_a_block_that_fails_is_reported(tmp_path: Path) -> None:
    """The runner above, seen failing, and seen to have the command on its path."""
    page = ROOT / "README.md"
    run_block(Block(page, 1, "sh", ("run",), "command -v cerata\n"), tmp_path)
    with pytest.raises(pytest.fail.Exception, match="exited with 3"):
        run_block(Block(page, 1, "sh", ("run",), "exit 3\n"), tmp_path)
    warns = Block(page, 1, "python", ("run",), "import warnings\nwarnings.warn('x')\n")
    with pytest.raises(pytest.fail.Exception, match="exited with 1"):
        run_block(warns, tmp_path)


# --- doctests ------------------------------------------------------------------------------------


def run_examples(test: doctest.DocTest) -> list[str]:
    """Run the examples of a test and return what went wrong."""
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test, out=output.append, clear_globs=False)
    return output


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_examples_of_a_page_are_true(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pycon blocks of one page share their names, as one session."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "pycon":
            parser = doctest.DocTestParser()
            test = parser.get_doctest(block.text, names, block.place, str(page), block.line)
            assert test.examples, f"{block.place} is marked pycon and holds no example"
            test.globs = names
            assert run_examples(test) == []


def modules() -> list[str]:
    """Return the names of all modules of the package but the one that runs the command line."""
    # An integration without its framework raises; the test of its module is skipped.
    walk = pkgutil.walk_packages(cerata.__path__, "cerata.", onerror=lambda _: None)
    found = [info.name for info in walk]
    return ["cerata", *sorted(name for name in found if not name.endswith("__main__"))]


def load(name: str) -> ModuleType:
    # What a module prints when imported would be a fault of its own; it does not stop the test.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            return importlib.import_module(name)
        except cerata.Unsupported as missing:
            pytest.skip(str(missing))
        except ModuleNotFoundError as missing:
            # A module of a pack imports its framework; its package alone says which extra has it.
            if str(missing.name).startswith("cerata"):
                raise
            pytest.skip(str(missing))


def test_modules_were_found() -> None:
    """Guards the test below against finding nothing."""
    assert len(modules()) >= 8


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_are_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every module imports without a warning, says what it owns, and its examples hold."""
    monkeypatch.chdir(tmp_path)
    module = load(name)
    assert module.__doc__
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        if test.examples:
            assert run_examples(test) == []
