"""The programs in examples/: each runs as its first lines say, and does what they say."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata.projections.fulltext.asked import AskedWords
from examples import chat, folder_search, twenty_questions

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"


_NO_MODULES = ["test", "tests", "idlelib", "lib2to3", "site-packages", "config-*", "*_test.py"]
"""Folders and files of the standard library that answer no question about modules."""


def run(folder: Path, name: str, *arguments: str, exit_code: int = 0) -> str:
    """Run an example in a folder of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


def all_alike(question: AskedWords) -> np.ndarray:
    """Score 1 for whatever has any of the words."""
    rows, _, weights = question._of_rows
    return (np.bincount(rows, weights, question._scoring.rows) > 0).astype(np.float64)


@pytest.mark.slow("remembers 2,000 files")
def test_the_right_file_is_among_the_first_five(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2,000 real files, for all 20 questions, and the first for 17; the scores do it.

    Where all that match are equal, the oldest come first, and few answers are found.
    """
    said = run(tmp_path, "twenty_questions.py")
    right, asked = said.splitlines()[-1].split(" among ")[0].split(" of ")
    assert int(right) == int(asked) == len(twenty_questions.QUESTIONS) == 20
    assert int(said.splitlines()[-1].split(", ")[1].removesuffix(" first")) >= 17
    again = run(tmp_path, "twenty_questions.py")
    assert "\n0 files added" in f"\n{again}"
    assert again.splitlines()[-20:] == said.splitlines()[-20:]

    with cerata.open(tmp_path / "library.cera", mode="r") as store:
        assert len(store) > 1_900
        monkeypatch.setattr(AskedWords, "_totals", all_alike)
        assert twenty_questions.ask(store) < 9


def test_a_chat_remembers_across_processes_and_not_across_users(tmp_path: Path) -> None:
    """What one run was told the next one knows; another user's does not."""
    question = "Am I allergic to anything?"
    assert run(tmp_path, "agent.py", question) == "I do not know.\n"
    run(tmp_path, "agent.py", "I am allergic to peanuts.")
    assert run(tmp_path, "agent.py", question).endswith("I am allergic to peanuts.\n")
    assert run(tmp_path, "agent.py", "--user", "ben", question) == "I do not know.\n"
    with cerata.open(tmp_path / "agent.cera", mode="r") as store:
        roles = [frame.role for frame in store.frames()]
        assert roles.count("user") == roles.count("assistant") == 4


@pytest.mark.minilm
def test_a_chat_answers_by_meaning(tmp_path: Path) -> None:
    """Anna got "I do not know", since no word of the question was in her message."""
    question = "What must I not eat?"
    run(tmp_path, "agent.py", "I live in Oslo.")
    run(tmp_path, "agent.py", "I am allergic to peanuts.")
    assert run(tmp_path, "agent.py", question) == "You told me: I am allergic to peanuts.\n"
    assert run(tmp_path, "agent.py", "--user", "ben", question) == "I do not know.\n"


CHAT = """\
anna: What must I not eat? I am allergic to peanuts.
anna: May I cook at night? The kitchen is closed after ten in the evening.
anna · sleeps in · room 1 anna · sleeps in · room of anna
ben: What must I not eat? I am a vegetarian and never touch meat.
ben: May I cook at night? The kitchen is closed after ten in the evening.
ben · sleeps in · room 1 ben · sleeps in · room of ben
"""


def meanings(texts: Sequence[str]) -> list[list[float]]:
    """Return a direction for each subject, in place of a model that knows what words mean."""
    subjects = ("eat allergic peanuts vegetarian meat", "cook kitchen closed", "guests weekends")
    bags = [set(re.findall(r"\w+", text.lower())) for text in texts]
    return [[0.1 + len(bag & {*subject.split()}) for subject in subjects] for bag in bags]


def test_a_chat_keeps_users_apart_and_shares_the_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each gets answers by meaning, in several sessions; a second run prints the same."""
    embedder = cerata.CallableEmbedder(meanings, name="meanings", revision="1", dimension=3)
    for _ in range(2):
        chat.main(str(tmp_path / "chat.cera"), embedder)
        assert capsys.readouterr().out == CHAT


@pytest.mark.minilm
def test_a_chat_answers_by_meaning_with_the_model(tmp_path: Path) -> None:
    assert run(tmp_path, "chat.py") == CHAT


def test_an_audit_names_writers_reasons_and_the_answer_then(tmp_path: Path) -> None:
    """Who changed what the memory knew on a day, and why."""
    printed = run(tmp_path, "audit.py")
    assert printed == (
        "in February: A customer can return a purchase for 30 days. returns · paid by · the shop\n"
        "now: A customer can return a purchase for 14 days.\n"
        "#3 ben: PutFrame, the new terms of March\n"
        "#4 ben: SupersedeFrame, the new terms of March\n"
        "#5 ben: RetractFact, the new terms of March\n"
    )
    assert [*tmp_path.iterdir()] == []


def test_a_folder_search_finds_the_file_with_the_answer(tmp_path: Path) -> None:
    """Twice, because the second run must read the stored files and print the same."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ports.md").write_text(
        "# Ports\n\n| service | port | owner |\n|---|---|---|\n"
        "| database | 5433 | anna |\n| queue | 5672 | cara |\n"
    )
    (notes / "code.py").write_text('def escape(text):\n    """Escape a text for HTML."""\n')
    (notes / "plan.txt").write_text("We deploy on Tuesday, after the stand-up.\n")
    questions = ("who is the owner of the queue?", "when do we deploy?", "escape HTML")
    answers = (
        f"{questions[0]}\n  {notes}/ports.md: | queue | 5672 | cara |\n"
        f"{questions[1]}\n  {notes}/plan.txt: We deploy on Tuesday, after the stand-up.\n"
        f"{questions[2]}\n  {notes}/code.py: def escape(text):\n"
    )
    first = run(tmp_path, "folder_search.py", "--in", "notes", *questions)
    assert first == f"3 files added, 0 unchanged\n{answers}"
    again = run(tmp_path, "folder_search.py", "--in", "notes", *questions)
    assert again == f"0 files added, 3 unchanged\n{answers}"


@pytest.mark.slow("remembers the modules of the standard library")
def test_a_folder_search_over_real_files_has_the_right_file_first(tmp_path: Path) -> None:
    """The modules of the standard library, without their tests: the file first for 18 of 20."""
    library = twenty_questions.library()
    with cerata.open(tmp_path / "library.cera") as store:
        done = store.files.remember([library], include=["*.py"], exclude=_NO_MODULES)
        assert len(done.of("added")) > 350
        firsts = [
            (folder_search.best_files(store, question, 1)[0].frame.uri, f"{library}/{file}")
            for question, file in twenty_questions.QUESTIONS
        ]
    right = sum(first == answer for first, answer in firsts)
    assert right >= 18


@pytest.mark.parametrize("name", ["audit.py", "chat.py", "folder_search.py"])
def test_a_first_program_takes_under_forty_lines(name: str) -> None:
    """A newcomer reads a screen."""
    path = EXAMPLES / name
    assert len(path.read_text(encoding="utf-8").splitlines()) < 40


def test_workers_do_every_task_once_though_one_is_killed(tmp_path: Path) -> None:
    """The example counts for itself, and would say which task was done twice or never."""
    said = run(tmp_path, "workers.py", "--tasks", "12")
    assert "worker-0 was killed; 1 task of it was put back\n" in said
    assert said.endswith("12 of 12 tasks done, each once\n")


def test_a_second_model_takes_over_though_it_is_killed(tmp_path: Path) -> None:
    """The example looks itself: no note is embedded twice, and the past stays."""
    said = run(tmp_path, "second_model.py", "--notes", "200").splitlines()
    assert said[0] == "killed with signal 9"
    assert said[1] == "100 of 200 notes were left, and have a vector in toy@2/16/cosine"
    assert said[2].startswith("200 notes embedded again, each once")


def test_a_second_stage_sorts_the_hits_and_is_repeated_without_its_model(tmp_path: Path) -> None:
    """The example looks itself whether the repeated context is equal."""
    said = run(tmp_path, "second_stage.py").splitlines()
    assert said[0].removeprefix("by words") != said[1].removeprefix("reranked")
    assert said[1].startswith("reranked: We take the slow train from Bergen to Oslo")
    assert said[2] == "rank 2 before, 1 by pairs@1: 3.000"
    assert said[3] == "repeated without pairs@1, byte for byte"


def test_the_pictures_of_the_docs_are_those_that_are_drawn(tmp_path: Path) -> None:
    """As large, and each of one size whoever draws it; bytes differ with matplotlib's version."""
    run(tmp_path, "two_clocks.py")
    for name in ("facts", "graph"):
        drawn, shown = (
            re.search(rb'width="\S+" height="\S+" viewBox="[^"]+"', folder.read_bytes())
            for folder in (tmp_path / f"{name}.svg", ROOT / "docs" / "pictures" / f"{name}.svg")
        )
        assert drawn is not None
        assert shown is not None
        assert drawn[0] == shown[0]
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_a_killed_researcher_goes_on_and_runs_again(tmp_path: Path) -> None:
    """No recorded call is made again, and a re-run needs no source."""
    killed = run(tmp_path, "researcher.py", "--kill-after", "2", exit_code=9)
    assert killed == "" or killed.splitlines() == ["reading wax", "reading honey"]
    lines = run(tmp_path, "researcher.py").splitlines()
    assert lines[:3] == ["reading honey", "reading comb", "summarising"]
    assert lines[-1] == "run week-1 of researcher: same, 5 of 5 calls answered"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cerata",
            "agents",
            "runs",
            "week-1",
            "researcher:research",
            "--again",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{EXAMPLES}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{lines[-1]}\n"


def test_a_killed_portfolio_goes_on_by_reference(tmp_path: Path) -> None:
    """No price is fetched twice, the prompt has no price, and the note outlives the run."""
    killed = run(tmp_path, "portfolio.py", "--kill-after", "2", exit_code=9)
    assert killed == "" or killed.splitlines() == ["fetching BEES", "fetching COMB"]
    assert run(tmp_path, "portfolio.py").splitlines() == [
        "fetching COMB",
        "fetching WAXY",
        "The prompt has 18 lines and none of the prices.",
        "week-1: 3,070.00, most of it in COMB",
    ]
    with cerata.open(tmp_path / "portfolio.cera", mode="r") as store:
        agent = cerata.Agent(store, "portfolio")
        [run_row] = agent.runs()
        assert run_row.status == "done"
        assert agent.refs("week-1") == []
        before = agent.at(store.head.seq - 3)
        measured = before.get("week-1", "$ref:measure.1")
        assert measured == {"BEES": 657.6, "COMB": 2272.0, "WAXY": 140.4}
        assert agent.slot("notes", user_id="u1").get("week-1") == {"value": 3070.0, "best": "COMB"}


def test_a_killed_triage_goes_on_and_runs_again(tmp_path: Path) -> None:
    """Its recorded ratings are not asked for again, though its calls overlap."""
    run(tmp_path, "triage.py", "--kill-after", "5", exit_code=9)
    said = run(tmp_path, "triage.py")
    assert "t-1" not in said.split("run t-1")[0]
    assert said.count("rating 'Thanks, all is well.'") == 2
    again = [line for line in said.splitlines() if line.startswith("run t-")]
    assert [line.split(": ")[1].split(",")[0] for line in again] == ["same"] * 3


def test_three_days_print_the_page(tmp_path: Path) -> None:
    """docs/continuity.md shows the output; all times are given, so each run prints the same."""
    printed = run(tmp_path, "three_days.py")
    page = (ROOT / "docs" / "continuity.md").read_text(encoding="utf-8")
    shown = page.partition("python examples/three_days.py\n```\n\n```text\n")[2].partition("```\n")[
        0
    ]
    assert printed == shown
    assert run(tmp_path, "three_days.py") == printed


def test_every_example_is_run_here() -> None:
    """An example that nothing runs stops working unseen."""
    source = Path(__file__).read_text(encoding="utf-8")
    programs = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert programs
    integrations = Path(__file__).parent / "integrations"
    source += "".join(page.read_text(encoding="utf-8") for page in integrations.glob("*.py"))
    assert [name for name in programs if f'"{name}"' not in source] == []
