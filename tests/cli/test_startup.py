"""Help, the version, errors of usage and completion answer at once: they load no engine."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

import cerata
from cerata.cli import options as choices
from cerata.cli.parser import Parser, parser
from cerata.cli.verbs import names_in, verb_words
from cerata.engine.errors import InvalidInput
from cerata.memory.values.graph import KINDS
from cerata.projections.facts.graph import DIRECTIONS
from cerata.projections.registry import BUILT_IN
from cerata.retrieval.context.packing import Order
from cerata.retrieval.context.policies import POLICIES
from cerata.retrieval.ranking.profile import PROFILES

from .conftest import Run, verbs_below

LOADED = """
import atexit, resource, sys
def report():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    heavy = [name for name in {heavy!r} if name in sys.modules]
    print(len(sys.modules), usage.ru_utime + usage.ru_stime, *heavy, file=sys.stderr)
atexit.register(report)
"""
"""What a process prints at its end: modules, seconds of processor time, names of heavy ones."""

ANSWER = "from cerata.__main__ import main; sys.argv[1:] = {words!r}; sys.exit(main())"

HEAVY = ("numpy", "msgspec", "rich", "dataclasses", "cerata.memory")
"""Modules that only a verb may load."""

_SUBJECTS_OF_OTHERS = (
    "rich.console",
    "numpy.ma",
    "cerata.memory.ingest.document",
    "cerata.memory.links.why",
    "cerata.memory.search.vector_lane",
    "cerata.memory.values.explanation",
    "cerata.memory.values.graph",
    "cerata.projections.facts.graph",
)

_FOR_SEARCHES = (
    "numpy",
    "rich",
    "whoosh",
    "cerata.projections.frames.projection",
    "cerata.projections.fulltext.projection",
    "cerata.memory.search.search",
    "cerata.memory.snapshot.layers",
    "cerata.retrieval.embedders.embedder",
)

NOT_NEEDED = {
    "put": (*_SUBJECTS_OF_OTHERS, *_FOR_SEARCHES, "subprocess"),
    "log": (*_SUBJECTS_OF_OTHERS, *_FOR_SEARCHES, "subprocess", "cerata.memory.batch.validation"),
    "info": ("rich.console",),
    "recall": (
        *_SUBJECTS_OF_OTHERS,
        "rich.text",
        "cerata.memory.batch.validation",
        "cerata.memory.facts.search",
        "cerata.memory.values.facts",
        "cerata.projections.links.projection",
    ),
}
"""For each verb, modules that its work in a pipe does not need."""

MODULES_MAX = 170
"""An empty Python has about 50, argparse and the parsers of all verbs 100, numpy alone 110 more."""

RATIO_MAX = 12.0
"""Processor time, against an empty Python in the same minute; the engine takes about 60 times."""


def cost(
    words: list[str], folder: Path, heavy: Sequence[str] = HEAVY
) -> tuple[int, float, list[str]]:
    """Return the modules that a command loads, its processor time, and its heavy modules."""
    code = LOADED.format(heavy=heavy) + (ANSWER.format(words=words) if words else "")
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    modules, seconds, *loaded = ended.stderr.splitlines()[-1].split()
    return int(modules), float(seconds), loaded


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["recall", "--help"]])
def test_help_and_version_load_no_engine(words: list[str], tmp_path: Path) -> None:
    """A person waits for these; loading the engine takes most of a second on a slow machine."""
    modules, _, heavy = cost(words, tmp_path)
    assert heavy == []
    assert modules <= MODULES_MAX


@pytest.mark.parametrize("verb", NOT_NEEDED)
def test_a_verb_loads_only_its_parts(verb: str, tmp_path: Path) -> None:
    """A cold command is mostly imports, so a part that others need makes this one slow."""
    with cerata.open(tmp_path / "memory.cera") as store:
        note = store.put_frame("The index in use is Annoy.")
        store.history.tag("chosen", at=note)
        # The state of tags is then read from a checkpoint, and the event from a segment.
        store.checkpoint()
    words = {"put": ["A", "second", "note."], "recall": ["which index?"]}.get(verb, [])
    assert cost([verb, *words], tmp_path, NOT_NEEDED[verb])[2] == []


def test_a_put_into_many_frames_loads_no_numpy(tmp_path: Path) -> None:
    """The keys of the checkpoints are known without the projections."""
    with cerata.open(tmp_path / "memory.cera") as store:
        for start in range(0, 5_000, 500):
            store.put_frames([f"Note {number}." for number in range(start, start + 500)])
        store.checkpoint()
    assert cost(["put", "A", "last", "note."], tmp_path, NOT_NEEDED["put"])[2] == []


@pytest.mark.parametrize("line", ["cerata re", "cerata recall --m", "cerata log -f mem"])
def test_completion_loads_no_engine(line: str, tmp_path: Path) -> None:
    """A shell asks at every press of the Tab key."""
    variables = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "answer"),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    code = "import sys; from cerata.__main__ import main; import os\n"
    # argcomplete leaves by os._exit, so the modules are written by a wrapper of it.
    code += (
        "leave = os._exit\n"
        "def gone(status):\n"
        "    open('modules', 'w').write(' '.join(sys.modules))\n"
        "    leave(status)\n"
        "os._exit = gone\n"
        "main()\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), **variables},
        check=True,
        timeout=60,
    )
    loaded = set((tmp_path / "modules").read_text().split())
    assert loaded & {"numpy", "msgspec", "rich", "cerata.memory"} == set()
    assert "argcomplete" in loaded


def test_the_version_takes_little_more_than_python(tmp_path: Path) -> None:
    """A ratio, since seconds depend on the machine; the best of three, since others use it."""
    empty = min(cost([], tmp_path)[1] for _ in range(3))
    version = min(cost(["--version"], tmp_path)[1] for _ in range(3))
    assert version <= RATIO_MAX * max(empty, 0.01)


def verbs_of(words: Sequence[str]) -> list[str]:
    """Return the verbs that the parser of a command line knows, in the order of the help."""
    return list(verbs_below(parser(words)))


def test_a_command_builds_the_parser_of_its_verb() -> None:
    """The parsers of all verbs take many times as long as one."""
    assert verbs_of([]) == verb_words()
    for words in verb_words():
        assert verbs_of(["--json", "-f", "recall", *words.split(), "log"]) == [words]
    assert verbs_of(["facts", "--help"]) == [f"facts {name}" for name in names_in("facts")]
    assert verbs_of(["--version", "recall"]) == ["info"]
    assert verbs_of(["--help", "recall"]) == [*names_in("everyday")] == verbs_of(["-h"])


@pytest.mark.parametrize(
    "words", [["-fnotes.cera", "recall"], ["-f"], ["--", "recall"], ["verify"]]
)
def test_other_words_before_the_verb_build_all_parsers(words: list[str]) -> None:
    """An unusual spelling of an option is left to argparse."""
    assert verbs_of(words) == verbs_of([])


@pytest.mark.parametrize(
    "words",
    [["recal"], ["-5", "recall"], ["--jsn", "recall", "x"], ["--lock-timeout", "x", "log"], ["-f"]],
)
def test_an_error_is_that_of_the_whole_parser(words: list[str]) -> None:
    """The nearest verb is looked for among all verbs."""

    def error(top: Parser) -> str:
        with pytest.raises(InvalidInput) as caught:
            top.parse_args(words)
        return str(caught.value)

    assert error(parser(words)) == error(parser())


def test_choices_are_those_of_the_rooms() -> None:
    """A parser has copies of the names, so that it need not load the tables."""
    assert choices.DIRECTIONS == DIRECTIONS
    assert choices.LINK_KINDS == KINDS
    assert get_args(Order) == choices.ORDERS
    assert tuple(POLICIES) == choices.POLICIES
    assert tuple(PROFILES) == choices.PROFILES
    assert tuple(BUILT_IN) == choices.PROJECTIONS


def test_rebuild_names_every_projection(capsys: pytest.CaptureFixture[str]) -> None:
    """Its help once listed four of eight."""
    with pytest.raises(SystemExit):
        parser().parse_args(["file", "maintain", "--only", "rebuild", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert ", ".join(BUILT_IN) in text


class TestIds:
    """Every output writes #1, so every verb reads #1."""

    @pytest.mark.parametrize(
        "words",
        [
            ("show", "#1"),
            ("time", "history", "#1"),
            ("list", "--by", "access", "#1"),
            ("update", "#1", "--by", "#2"),
            ("delete", "#2"),
            ("facts", "extract", "#1", "--dry-run"),
        ],
    )
    def test_an_id_may_have_its_sign(self, run: Run, words: tuple[str, ...]) -> None:
        """As a person copies it from a result."""
        run("put", "Anna lives in Oslo.")
        run("put", "Anna lives in Rome.")
        assert run(*words)[0] == 0

    @pytest.mark.parametrize("text", ["x", "1.5", "##1", "#", "", "٣"])
    def test_no_id_is_an_error_with_an_example(self, run: Run, text: str) -> None:
        """The remedy shows both ways to write one."""
        code, _, err = run("show", text)
        assert code == 2
        assert "an id is a number such as 12 or '#12'" in " ".join(err.split())


def test_help_names_documents_that_are_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """After an installation from the index there is no docs folder beside the user."""
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    line = next(
        line for line in capsys.readouterr().out.splitlines() if line.startswith("Documentation: ")
    )
    assert Path(line.removeprefix("Documentation: ")).is_file()
    for verb in ("recall", "remember", "facts"):
        with pytest.raises(SystemExit):
            parser().parse_args([verb, "--help"])
        assert "docs/" not in capsys.readouterr().out
