"""A few of the kills of `tests.agents.kills`, and proof that the check sees each fault."""

import shutil
from pathlib import Path

import pytest

import cerata

from . import kills


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("life")
    result = kills.run(folder, 5, seed=2)
    assert result.faults == []
    assert result.kills == 5
    assert result.acknowledged >= 12
    return folder


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("made r0 fetch 0", "computed again"),
        ("acknowledged r0 fetch 0 $ref:fetch.9", "renamed"),
    ],
)
def test_a_broken_promise_is_seen(life: Path, line: str, fault: str) -> None:
    """The life has no fault; with this line in its journal it has one."""
    journal = life / "journal"
    before = journal.read_text()
    result = kills.Result()
    runs = before.count("\nkept ")
    try:
        journal.write_text(f"{before}{line}\n")
        kills._check_all(life / "memory.cera", journal, runs, result)
    finally:
        journal.write_text(before)
    assert [fault in each for each in result.faults] == [True]


def test_a_lost_result_is_seen(life: Path, tmp_path: Path) -> None:
    """The life is copied: a further run would be a fault of the other tests."""
    path = Path(shutil.copy(life / "memory.cera", tmp_path))
    with cerata.open(path) as store:
        agent = cerata.Agent(store, "analyst", memory=kills.MEMORY)
        open_run = agent.run("r99")
        open_run.put("fetch", [1])
        journal = tmp_path / "journal"
        journal.write_text(
            "acknowledged r99 fetch 0 $ref:fetch.1\nacknowledged r99 fetch 1 $ref:fetch.2\n"
        )
        result = kills.Result()
        kills._check_open(path, journal, result)
    assert result.faults == ["changed: $ref:fetch.1 of r99", "lost: $ref:fetch.2 of r99"]
