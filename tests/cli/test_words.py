"""What every verb prints, to the letter, at 80 columns; and what --json has, by its schema.

``CERATA_GOLDEN=write python -m pytest tests/cli/test_words.py`` writes the golden files anew: look
at the difference before you commit it.
"""

import functools
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import fastjsonschema
import pytest

from cerata.cli.parser import parser
from cerata.cli.verbs import MEANT, groups, renamed, renamed_verbs
from cerata.engine.errors import InvalidInput
from cerata.integrations.mcp.definitions import READING_TOOLS, WRITING_TOOLS

from .conftest import verbs, words_of
from .story import CRASH_TEST, STORY, Answer, Step, steady, tell

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Path(__file__).parents[2] / "docs" / "answers.schema.json"
STEPS = [step for step in STORY if isinstance(step, Step)]
WIDTH = 80
GOLDEN_SEED = 20240229


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CERATA_FILE", raising=False)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return tmp_path


def masked(answer: Answer) -> str:
    """Return what the golden file of an answer has."""
    text = steady(answer.text())
    if answer.step.verb == "tour":
        # How far a child came before it was killed is chance, and the digests depend on it.
        text = re.sub(r"[0-9a-f]{32}…", "DIGEST…", re.sub(r"\b\d[\d,]*\b", "N", text))
        text = re.sub(r" +N", " N", text)
    if answer.step.verb == CRASH_TEST:
        # How many states there are is the simulator's to change.
        text = re.sub(r"^ +N", "  N", re.sub(r"\b\d[\d,]*\b", "N", text), flags=re.MULTILINE)
    if answer.step.verb == "mcp":
        text = text.replace(str(Path.cwd()), "/FOLDER")
    if answer.step.verb == "completion":
        text = "\n".join(text.splitlines()[:2]) + "\n"
    return text


@pytest.mark.unwatched("damages files")
def test_every_verb_says_what_its_golden_file_has(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word that changes is seen in review; and 80 columns are what a terminal has."""
    wrong: dict[str, str] = {}
    for answer in tell(here, capsys, GOLDEN_SEED):
        assert answer.code == answer.step.code, answer.text()
        text = masked(answer)
        path = GOLDEN / f"{answer.step.name}.txt"
        if os.environ.get("CERATA_GOLDEN") == "write":
            path.write_text(text, encoding="utf-8")
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong[answer.step.name] = text
        # A head or a context is copied, so its lines are not wrapped.
        whole = ("completion", "head", "recall-messages", "recall-record", "mcp-claude-code")
        if answer.step.name not in (*whole, "mcp-vscode", "assemble", "assemble-session"):
            long = [line for line in answer.out.splitlines() if len(line) > WIDTH]
            assert long == [], answer.step.name
    assert wrong == {}


def test_there_is_a_golden_file_for_every_step_and_none_besides() -> None:
    """A file that nothing compares is forgotten."""
    assert {path.stem for path in GOLDEN.iterdir()} == {step.name for step in STEPS}


@functools.cache
def schema(name: str) -> Callable[[Any], None]:
    """Return what checks an answer of a verb."""
    whole = json.loads(SCHEMA.read_text(encoding="utf-8"))
    chosen = {**whole, "$ref": f"#/definitions/{name}"}
    return cast("Callable[[Any], None]", fastjsonschema.compile(chosen))


def schema_of(answer: Answer) -> str:
    """Return the name of the schema that an answer has."""
    if answer.step.name in ("verify-head", "verify-head-later"):
        # The finding is a part of the answer, with the exit code of its class.
        return "verify"
    if answer.code not in (0, 1):
        return "error"
    if answer.step.name.startswith(f"{CRASH_TEST}-replay"):
        return "replay"
    if answer.step.name in ("rerun-compare", "rerun-chunking", "rerun-projection"):
        return "comparison"
    if answer.step.name == "rerun-recall":
        return "rerunRecall"
    if answer.step.name == "facts-conflicts":
        return "conflicts"
    return "tags" if answer.step.name == "tags" else answer.step.verb


@pytest.mark.unwatched("damages files")
def test_every_verb_answers_json_as_its_schema_says(
    here: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """One object, nothing else on standard output, and no name that is not written down."""
    seen: set[str] = set()
    for answer in tell(here, capsys, seed, "--json"):
        assert answer.code == answer.step.code, answer.out
        said = json.loads(answer.out)
        schema(schema_of(answer))(said)
        seen.add(schema_of(answer))
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["definitions"]
    # The comparison with other systems is a benchmark; its test has this part of the schema.
    assert seen == {name for name in definitions if name[0].islower()} - {"bench"}


def test_every_verb_is_in_the_story() -> None:
    """A verb that is added is added to it."""
    assert set(verbs()) == {words_of(step.arguments) for step in STEPS if step.arguments}
    assert len(verbs()) == 45


LISTS = (
    "audit",
    "search",
    "show",
    "frames",
    "facts",
    "graph",
    "timeline",
    "log",
    "follow",
    "history",
    "access",
    "tags",
    "remember",
    "values",
)


@pytest.mark.unwatched("damages files")
def test_lists_come_as_one_object_a_line_too(
    here: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """The same items as in the one object, in order."""
    items = {"search": "hits", "show": "frames", "timeline": "entries", "log": "events"}
    items |= {"follow": "events"}
    items |= {
        "audit": "entries",
        "history": "versions",
        "frames": "frames",
        "facts": "facts",
        "graph": "neighbours",
        "access": "accesses",
        "tags": "tags",
        "remember": "files",
        "values": "values",
    }
    told = [answer for answer in tell(here, capsys, seed, "--json") if answer.step.name in LISTS]
    assert {answer.step.name for answer in told} == set(LISTS)
    from cerata.cli import main

    for answer in told:
        capsys.readouterr()
        # The first of two would leave the second nothing to add.
        still = ["--dry-run"] if answer.step.name == "remember" else []
        asked = [*answer.step.arguments, *still, "-f", "memory.cera"]
        main([*asked, "--json"])
        whole = json.loads(capsys.readouterr().out)[items[answer.step.name]]
        main([*asked, "--jsonl"])
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line) for line in lines] == whole
        assert whole


@pytest.mark.parametrize("verb", verbs())
def test_help_fits_and_its_examples_parse(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example that does not work is worse than none."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    one = verbs()[verb]
    text = one.format_help()
    assert max(map(len, text.splitlines())) <= WIDTH
    examples = [line.strip() for line in text.splitlines() if line.startswith("  cerata ")]
    assert examples
    for example in examples:
        command = re.split(r" [|<>] ", example)[0]
        options = parser().parse_args(list(_words(command))[1:])
        assert one.verb is not None
        assert options.run == one.verb.run


def _words(command: str) -> Iterator[str]:
    for quoted, plain in re.findall(r"'([^']*)'|(\S+)", command):
        yield quoted or plain


READS = (
    *("recall", "search", "show", "list", "log", "info", "facts list", "facts graph", "facts why"),
    *("time history", "time tag", "time explain", "file export"),
)


@pytest.mark.parametrize("verb", READS)
def test_every_verb_that_reads_takes_a_basis(verb: str) -> None:
    """Any past state can be asked, by every question; diff has two of its own."""
    assert "--at" in verbs()[verb].format_help()


def test_every_tool_of_mcp_leads_to_a_verb() -> None:
    """A user who saw an agent forget something tries this name; the nearest spelling misleads."""
    assert not verbs().keys() & MEANT.keys()
    assert {verb for meant in MEANT.values() for verb in meant} <= verbs().keys()
    tools = {str(tool["name"]) for tool in (*READING_TOOLS, *WRITING_TOOLS)}
    assert tools - verbs().keys() <= MEANT.keys() | renamed_verbs().keys() | groups().keys()
    assert "delete" in MEANT["forget"]


OLD_VERBS = (
    *("remember", "put", "recall", "search", "explain", "show", "frames", "timeline", "access"),
    *("tune", "facts", "assert", "correct", "retract", "graph", "export", "import", "extract"),
    *("embed", "why", "link", "unlink", "log", "audit", "history", "blame", "diff", "follow"),
    *("bisect", "runs", "rerun", "slots", "slot", "refs", "ref", "proposals", "approve"),
    *("reject", "revoke", "sessions", "threads", "topics", "standing", "handoff", "summaries"),
    *("assemble", "reflect", "mcp", "fork", "supersede", "delete", "tag", "update", "restore"),
    *("sweep", "values", "info", "head", "verify", "rebuild", "checkpoint", "backup", "doctor"),
    *("repair", "compact", "maintain", "tour", "crash-test", "bench", "completion"),
)
"""The verbs before they had groups."""


@pytest.mark.parametrize("name", OLD_VERBS)
def test_an_old_name_leads_to_the_new_one(name: str) -> None:
    """A user of an earlier build types what worked; a wrong guess would be worse than an error."""
    if name in verbs() or name in groups():
        return
    news = renamed(name)
    assert news
    with pytest.raises(InvalidInput) as caught:
        parser([name]).parse_args([name])
    assert "has a new name" in str(caught.value)
    for new in news:
        assert f"{new}'" in str(caught.value)
        if not new.startswith("python"):
            words = new.split()
            assert words_of(words) in verbs()
            options = {option for word in words if (option := word).startswith("-")}
            assert options <= verbs()[words_of(words)]._option_string_actions.keys()


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["verfy"], "Did you mean 'file verify'?"),
        (["suprsede", "1"], "Did you mean 'update --text'?"),
        (["file", "verfy"], "Did you mean 'verify'?"),
        (["facts"], "Use one of list, assert, retract, link, why, graph, extract."),
        (["facts", "alice"], "Use one of list, assert, retract, link, why, graph, extract."),
        (["file", "verify", "--hed", "1"], "Did you mean '--head'?"),
        (["forget"], "Did you mean 'delete' or 'facts retract'?"),
    ],
)
def test_a_wrong_word_names_the_nearest(words: list[str], remedy: str) -> None:
    """Of all groups, since a user need not know the group."""
    with pytest.raises(InvalidInput) as caught:
        parser(words).parse_args(words)
    assert remedy in str(caught.value)
