"""Content dates from texts: every way to write, the caller's dates, carried and repeated writes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

import cerata
from cerata import Filter, Receipt, Store, agents
from cerata.engine.disk.environment import Environment
from cerata.engine.events import PutFrame
from cerata.projections.columnar.times import to_microseconds

from ...clocks import StandingClock

MAY_8 = "2023-05-08T13:56:00+00:00"
YESTERDAY = "2023-05-07"
DAY_US = 86_400_000_000


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(to_microseconds(MAY_8))


@pytest.fixture
def store(clock: StandingClock) -> Iterator[Store]:
    with cerata.open(":memory:", environment=replace(Environment(), clock=clock)) as store:
        yield store


def dates(store: Store, frame: int | Receipt) -> list[str]:
    return [f"{date:%Y-%m-%d}" for date in store.frame(frame).content_dates]


TEXT = "I ran a race yesterday."
PUTS: dict[str, Callable[[Store], Receipt]] = {
    "put_frame": lambda store: store.put_frame(TEXT),
    "put_frames": lambda store: store.put_frames([TEXT]),
    "search_text": lambda store: store.put_frame(
        b"\0", options=cerata.PutOptions(search_text=TEXT)
    ),
    "replace": lambda store: store.put_frame(
        TEXT, uri="a", options=cerata.PutOptions(replace=True)
    ),
    "message": lambda store: agents.remember_messages(store, [{"role": "user", "content": TEXT}]),
    "remember": lambda store: store.remember(TEXT),
    "supersede": lambda store: store.supersede(
        store.put_frame("I sat.", options=cerata.PutOptions(content_dates=["2001-01-01"])), TEXT
    ),
}


@pytest.mark.parametrize("put", PUTS.values(), ids=PUTS)
def test_a_date_counts_from_the_write(store: Store, put: Callable[[Store], Receipt]) -> None:
    assert dates(store, put(store)) == [YESTERDAY]


@pytest.mark.parametrize("put", PUTS.values(), ids=PUTS)
def test_a_date_is_seen_within_a_transaction(store: Store, put: Callable[[Store], Receipt]) -> None:
    with store.transaction():
        receipt = put(store)
        assert dates(store, receipt) == [YESTERDAY]
    assert dates(store, receipt) == [YESTERDAY]


def test_a_date_counts_from_the_creation_of_the_text(store: Store) -> None:
    created = "2020-03-01T08:00:00+00:00"
    for receipt in (
        store.put_frame(TEXT, options=cerata.PutOptions(created=created)),
        store.remember(TEXT, options=cerata.PutOptions(created=created)),
    ):
        assert dates(store, receipt) == ["2020-02-29"]
    batch = store.put_frames(["Plain.", "We met last May, and on 2 June 2019.", "Tomorrow?"])
    assert [dates(store, frame) for frame in batch.ids] == [
        [],
        ["2022-05-01", "2019-06-02"],
        ["2023-05-09"],
    ]


def test_dates_of_the_caller_stay_as_they_are(store: Store) -> None:
    given = ["2001-02-03", "1999-01-01T05:00:00+00:00"]
    for receipt in (
        store.put_frame(TEXT, options=cerata.PutOptions(content_dates=given)),
        store.put_frame(
            TEXT, uri="u", options=cerata.PutOptions(replace=True, content_dates=given)
        ),
        store.remember(TEXT, options=cerata.PutOptions(content_dates=given)),
    ):
        assert store.frame(receipt).content_dates == (
            datetime.fromisoformat("2001-02-03T00:00:00+00:00"),
            datetime.fromisoformat("1999-01-01T05:00:00+00:00"),
        )
    assert dates(store, store.put_frame(TEXT, options=cerata.PutOptions(content_dates=[]))) == []
    assert (
        dates(store, store.remember(TEXT, uri="v", options=cerata.PutOptions(content_dates=[])))
        == []
    )
    assert dates(store, store.append(PutFrame(text=TEXT))) == []


def test_a_date_that_cannot_be_read_is_refused(store: Store) -> None:
    before = store.head.seq
    for date in ("03/04/2026", "yesterday", "2026-02-30", "2026-01-01T00:00:00"):
        with pytest.raises(cerata.InvalidInput, match=r"is not an ISO time|has no zone"):
            store.put_frame(TEXT, options=cerata.PutOptions(content_dates=[date]))
    assert store.head.seq == before


def test_a_new_version_carries_dates_and_a_new_text_has_its_dates(
    store: Store, clock: StandingClock
) -> None:
    first = store.put_frame(TEXT, tags=["a"])
    clock.time_us += 30 * DAY_US
    second = store.update(first, tags=["b"])
    assert dates(store, second) == [YESTERDAY]
    store.delete(second)
    third = store.history.restore(second)
    assert dates(store, third) == [YESTERDAY]
    assert dates(store, store.supersede(third, "I rest today.")) == ["2023-06-07"]


def test_a_repeated_write_is_recognised_on_another_day(store: Store, clock: StandingClock) -> None:
    """The words are the caller's argument; the dates are not."""

    def in_block() -> Receipt:
        with store.transaction(key="block") as block:
            store.put_frame(TEXT)
            store.put_frame(TEXT, uri="b", options=cerata.PutOptions(replace=True))
        assert isinstance(block.receipt, Receipt)
        return block.receipt

    writes: list[Callable[[], Receipt]] = [
        lambda: store.put_frame(TEXT, options=cerata.PutOptions(key="1")),
        lambda: store.put_frames([TEXT], options=cerata.PutOptions(key="2")),
        lambda: store.put_frame(TEXT, uri="a", options=cerata.PutOptions(replace=True, key="3")),
        lambda: agents.remember_messages(store, [{"role": "user", "content": TEXT}], key="4"),
        in_block,
    ]
    first = [write() for write in writes]
    clock.time_us += 3 * DAY_US
    again = [write() for write in writes]
    assert [receipt.ids for receipt in again] == [receipt.ids for receipt in first]
    assert [receipt.added for receipt in again] == [False] * len(writes)


def test_each_chunk_has_its_dates(store: Store) -> None:
    filler = "Words of wax and string. " * 120
    text = f"# A\n\nyesterday\n\n{filler}\n\n# B\n\non 2 June 2019\n\n{filler}"
    receipt = store.remember(text)
    document, *chunks = map(store.frame, receipt.ids)
    assert document.content_dates == ()
    assert {
        (chunk.content_dates[0].strftime("%Y-%m-%d"), word)
        for chunk in chunks
        for word in ("yesterday", "June")
        if word in chunk.text
    } == {(YESTERDAY, "yesterday"), ("2019-06-02", "June")}
    assert sum(map(len, (chunk.content_dates for chunk in chunks))) == 2


def test_the_text_of_a_file_is_not_of_the_day_of_the_write(store: Store, tmp_path: Path) -> None:
    """A file may be years old: its relative dates count only from a creation time."""
    path = tmp_path / "a.txt"
    path.write_text("I ran a race yesterday, and on 2 June 2019.")
    remembered = store.files.remember([path])
    [file] = remembered.files
    assert file.id is not None
    assert dates(store, file.id) == ["2019-06-02"]
    created = store.remember(path, uri="other", options=cerata.PutOptions(created=MAY_8))
    assert dates(store, created) == [YESTERDAY, "2019-06-02"]


def test_a_question_finds_the_turn_that_speaks_of_its_period(store: Store) -> None:
    """Fails without the dates: both turns were written on one day."""
    for text in ("I ran a race, my first.", "I ran a race last August, my first."):
        store.put_frame(text, role="Ana", options=cerata.PutOptions(track="t", created=MAY_8))
    store.put_frame("Nice.", role="Ben", options=cerata.PutOptions(track="t", created=MAY_8))
    [first, *_] = store.search("Which race did Ana run in August 2022?")
    assert first.id == 2
    assert "period" in {share.signal for share in store.history.explain(first).signals}


def test_a_filter_of_content_times_reads_the_dates(store: Store) -> None:
    store.put_frame(TEXT)
    assert [frame.id for frame in store.frames(Filter(content="2023-05-07"))] == [1]
    assert [frame.id for frame in store.frames(Filter(content="2023-05-08"))] == []
    assert [frame.id for frame in store.frames(Filter(created="2023-05-08"))] == [1]
