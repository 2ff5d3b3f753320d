"""Cases: each replays by itself in a moment, and what found it is a short story.

The corpus holds an image for each planted bug of recovery that one shows (`corpus` makes them):
a sound engine passes all of them, one with the bug fails its own.
"""

import time
from pathlib import Path

import pytest

from cerata.fault_injection import cases
from cerata.fault_injection.cases import decode_case, replay_case
from cerata.fault_injection.parts import work
from cerata.fault_injection.plants import BY_NAME
from cerata.fault_injection.scales import SHARE, tasks

from .corpus import FOLDER, crash, shortest_case, shows

CORPUS = sorted(FOLDER.glob("*.case"))
SECONDS_MAX = 1.0
"""Of processor time for one case; measured 1 to 30 ms."""


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_case_of_the_corpus_holds_in_less_than_a_second(path: Path) -> None:
    """What broke once, or would with a bug, is asked again at every run."""
    case = decode_case(path.read_bytes())
    started = time.process_time()
    assert replay_case(case) is None
    assert time.process_time() - started < SECONDS_MAX


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_case_of_the_corpus_still_shows_its_bug(path: Path) -> None:
    """Otherwise it would hold whatever the engine did."""
    assert shows(BY_NAME[path.stem.replace("_", " ")], decode_case(path.read_bytes()))


def test_there_is_a_corpus_of_short_stories() -> None:
    """The specification asks for at most ten operations, five in the middle."""
    lengths = sorted(len(decode_case(path.read_bytes()).operations) for path in CORPUS)
    assert len(lengths) >= 5
    assert lengths[-1] <= 10
    assert lengths[len(lengths) // 2] <= 5


def test_a_failure_shrinks_to_what_shows_it() -> None:
    """Nine operations come down to the one or two whose recovery believes what it should not."""
    case = shortest_case(BY_NAME["believe a record's body unchecked"], crash)
    assert case is not None
    assert len(case.operations) <= 2
    assert shows(BY_NAME["believe a record's body unchecked"], case)


def test_a_violation_is_saved_and_replayed_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the report saves is what the command reads, with the bug and without."""
    task = next(task for task in tasks(SHARE, cases=str(tmp_path)) if task.part == "log")
    plant = BY_NAME["believe a record's body unchecked"]
    with plant.planted():
        assert work(task).problems
    saved = [str(path) for path in tmp_path.iterdir()]
    assert saved
    assert cases.main(saved) == 0
    assert "holds now" in capsys.readouterr().out
    with plant.planted():
        assert cases.main(saved) == 1
    assert "BROKEN" in capsys.readouterr().out
