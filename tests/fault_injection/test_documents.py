"""A crash in the middle of remembering: called again, each passage is there once."""

from functools import partial

import pytest

from cerata.fault_injection.crash_states.states import CrashState, Plan
from cerata.fault_injection.judging.campaign import Campaign, Story, Tally
from cerata.fault_injection.simulation.file_layout import FileGeometry
from cerata.fault_injection.simulation.write_order_monitor import OrderingMonitor
from cerata.fault_injection.stories.engine_workloads import recover
from cerata.memory.ingest import document as ingest

from ..crash.documents import record_documents, remember_again, sectioned

OLD, NEW = sectioned("old", 3), sectioned("new", 5)


def recorded() -> Story:
    return record_documents([OLD, NEW], OrderingMonitor(FileGeometry()))


def crashed(story: Story, plan: Plan) -> Tally:
    """Try crash states, and remember again in each distinct image."""

    def again(state: CrashState, of: Story, _seq: int) -> Tally:
        return remember_again(state, of, NEW)

    return Campaign(recover, plan, life=again, life_every=1, lives_max=1 << 20).check(story)


@pytest.mark.slow("the crash gate of each change tries these stories")
def test_a_document_of_several_batches_goes_on_after_any_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In every crash state of whole sectors, and torn ones: nothing twice, nothing missing."""
    monkeypatch.setattr(ingest, "_BATCH_EVENTS", 2)
    story = recorded()
    # The first document, then two and one; the second, then two, two, and one with the closing.
    assert [len(batch.events) for batch in story.model.batches] == [1, 2, 1, 1, 2, 2, 2]
    tally = crashed(story, Plan(samples=16, tears=64, pair_drops=32))
    assert [str(failure) for failure in tally.failures] == []
    assert tally.lives == tally.opened > 200


def test_batches_of_the_real_size_go_on_too() -> None:
    """Documents of 300 passages: of 256 chunks a batch, the first goes to an extent of its own."""
    story = record_documents(
        [sectioned("old", 300), sectioned("new", 300)], OrderingMonitor(FileGeometry())
    )
    assert [len(batch.events) for batch in story.model.batches] == [1, 256, 44, 1, 256, 45]
    again = partial(remember_again, text=sectioned("new", 300))
    campaign = Campaign(
        recover,
        Plan(exhaustive=8, samples=4, tears=4, pair_drops=2),
        life=lambda state, of, _seq: again(state, of),
        life_every=25,
    )
    tally = campaign.check(story)
    assert [str(failure) for failure in tally.failures] == []
    assert tally.lives == campaign.lives_max


def test_an_ingest_that_forgets_what_it_has_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look for what is there already keeps a second call from storing it twice."""
    monkeypatch.setattr(ingest, "_BATCH_EVENTS", 2)
    story = recorded()

    def nothing(*_: object) -> None: ...

    monkeypatch.setattr(ingest.Ingest, "_find_same", nothing)
    (failure, *_) = crashed(story, Plan(exhaustive=8, samples=1, tears=0)).failures
    assert failure.finding.rule in ("O1", "O2")
