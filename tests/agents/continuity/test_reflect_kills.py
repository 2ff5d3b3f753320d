"""A few of the kills of `reflect_kills`, and proof that the checks see each fault."""

from pathlib import Path

import pytest

import cerata
from cerata import Filter
from cerata.agents.activities.values import activities_at
from cerata.memory.snapshot.reader import snapshot_of

from . import reflect_kills


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("life")
    result = reflect_kills.run(folder, 4, seed=3)
    assert result.faults == []
    assert (result.kills, result.ended > 0) == (4, True)
    assert result.acknowledged > 4
    return folder


def test_a_task_that_is_asked_again_is_seen(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("asked a\nasked a\nanswered a\nacknowledged a\nasked b\nasked a\n")
    result = reflect_kills.Result()
    reflect_kills.check_journal(journal, result)
    assert result.faults == ["the acknowledged task a was asked again"]
    assert (result.acknowledged, result.repeated, result.during) == (1, 2, 2)


@pytest.mark.slow("kills four agents that sum up")
def test_a_doubled_and_a_stale_summary_are_seen(life: Path) -> None:
    with cerata.open(life / "memory.cera") as store:
        assert reflect_kills.summary_faults(store, is_ended=True) == []
        frames = [frame for frame in store.frames(Filter(kind="summary")) if frame.uri]
        days = [frame for frame in frames if (frame.uri or "").count("-") == 2]
        stale, doubled = days[0], days[-1]
        activities = activities_at(snapshot_of(store))
        call = activities.call_that_made(stale.id)
        assert call is not None
        store.delete(activities.used_by(call)[0])
        store.put_frame(
            "Again.",
            kind="summary",
            uri=doubled.uri,
            options=cerata.PutOptions(track=reflect_kills.AGENT, scope=dict(doubled.scope)),
        )
        faults = " ".join(reflect_kills.summary_faults(store, is_ended=True))
    assert "is stale" in faults
    assert "has 2 summaries" in faults
    assert "has no call" not in faults
