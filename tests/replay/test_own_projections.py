"""A user's own projection: folded, saved, carried by others, at any basis, never trusted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import cerata
from cerata import EventBody
from cerata.engine.errors import InvalidInput, NotFound, ProjectionFailed, ReadOnly, Unsupported
from cerata.engine.events import PutFrame
from cerata.memory.batch.writer import session_of
from cerata.memory.store import Store
from cerata.projections.core.projection import FoldedEvent, Projection
from cerata.projections.rows.row_fold import RowFold
from cerata.projections.rows.row_projection import RowProjection

from ..inside import fold_of
from .spending import Spending, Spent

TAGS = ("tea", "books", "rent", "tea")


def spend(store: Store, count: int, start: int = 0) -> None:
    """Append ``count`` spendings in batches of 100."""
    drafts = [
        cerata.Draft(Spent(tag=TAGS[n % 4] + str(n % 7), cents=1 + n % 5))
        for n in range(start, start + count)
    ]
    for at in range(0, count, 100):
        session_of(store).write(drafts[at : at + 100])


def expected(store: Store, n: int) -> dict[str, int]:
    """The rows at n, straight from the log."""
    rows: dict[str, int] = {}
    for event in store.log(1, n):
        if isinstance(event.body, Spent):
            rows[event.body.tag] = rows.get(event.body.tag, 0) + event.body.cents
    return {tag: cents for tag, cents in rows.items() if cents}


def test_it_is_read_at_any_basis(tmp_path: Path) -> None:
    """Time travel for free: before, at and after the ends of ranges."""
    with cerata.open(tmp_path / "a.cera", projections=[Spending]) as store:
        spend(store, 1_300)
        for n in (0, 1, 511, 512, 513, 1_024, 1_299, 1_300):
            assert dict(store.at(n).stream.projection("spending").rows) == expected(store, n)
        assert store.stream.projection(Spending).rows["tea0"] == expected(store, 1_300)["tea0"]
        assert store.verify().ok


def test_it_comes_back_from_its_checkpoint(tmp_path: Path) -> None:
    """The rows of complete ranges and of the rest, without folding an event again."""
    path = tmp_path / "a.cera"
    with cerata.open(path, projections=[Spending]) as store:
        spend(store, 1_300)
        session_of(store).write(
            [cerata.Draft(Spent(tag="tea0", cents=-store.stream.projection(Spending).rows["tea0"]))]
        )
        store.checkpoint()
        digests = store.stream.digests()
    with cerata.open(path, projections=[Spending]) as store:
        assert "tea0" not in store.stream.projection(Spending).rows
        assert dict(store.stream.projection(Spending).rows) == expected(store, 1_301)
        report = fold_of(store).reports["spending"]
        assert (report.restored_events, report.replayed_events) == (1_301, 0)
        spend(store, 300, 7)
        assert dict(store.stream.projection(Spending).rows) == expected(store, 1_601)
        assert store.stream.digests() == store.stream.digests(replay=True)
        assert store.stream.digests() != digests
        assert store.verify().ok


def test_who_does_not_know_it_carries_it(tmp_path: Path) -> None:
    """A file goes through the hands of others, who save their own; its chunks still serve."""
    path = tmp_path / "a.cera"
    with cerata.open(path, projections=[Spending]) as store:
        spend(store, 700)
        store.checkpoint()
    with cerata.open(path) as store:
        store.put_frames([f"text {n}" for n in range(600)])
        store.checkpoint()
        with pytest.raises(NotFound, match="'spending'"):
            store.stream.projection("spending")
    with cerata.open(path, projections=[Spending]) as store:
        assert dict(store.stream.projection("spending").rows) == expected(store, 700)
        report = fold_of(store).reports["spending"]
        assert (report.restored_events, report.replayed_events) == (700, 0)
        assert store.verify().ok


def test_code_that_raises_is_named_and_harms_nothing_else(tmp_path: Path) -> None:
    """The event is named; the store, other reads, and the past of the projection go on."""
    path = tmp_path / "a.cera"
    with cerata.open(path, projections=[Spending]) as store:
        spend(store, 30)
        session_of(store).write(
            [cerata.Draft(Spent(tag="tea", cents=5)), cerata.Draft(Spent(tag="bad", cents=1))]
        )
        store.put_frame("still here")
        for _ in range(2):
            with pytest.raises(ProjectionFailed, match=r"event 32 .*cannot divide") as caught:
                store.stream.projection("spending")
            assert (caught.value.projection, caught.value.seq) == ("spending", 32)
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert dict(store.at(31).stream.projection("spending").rows) == expected(store, 31)
        assert store.search("still here")
        store.checkpoint()
        found = store.verify()
        assert not found.divergences
        assert any("event 32" in note for note in found.notes)
    with cerata.open(path, projections=[Spending]) as store:
        assert dict(store.at(31).stream.projection("spending").rows) == expected(store, 31)
    with cerata.open(path) as store:
        assert store.verify().ok


def test_rows_of_a_view_do_not_change() -> None:
    """Whoever holds a view may not write into it."""
    with cerata.open(":memory:", projections=[Spending]) as store:
        spend(store, 3)
        view = store.at("HEAD").stream.projection(Spending)
        with pytest.raises(ReadOnly):
            view.rows["tea"] = 1
        with pytest.raises(ReadOnly):
            view.rows.pop("tea0")
        spend(store, 3)
        assert sum(view.rows.values()) < sum(store.stream.projection(Spending).rows.values())


class _Named(RowProjection[str, int]):
    def apply(self, events: Sequence[FoldedEvent]) -> None:
        """Fold nothing."""


@pytest.mark.parametrize("name", ["frames", "", "Spending!", "x" * 64])
def test_a_name_must_be_free_and_plain(name: str) -> None:
    """Its saved state goes by the name."""

    class Own(_Named):
        pass

    Own.name = name
    with pytest.raises(InvalidInput, match="taken" if name == "frames" else "named"):
        cerata.open(":memory:", projections=[Own])


class _Wireless(EventBody, frozen=True):
    """No @event gave it a wire name."""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("handles", "putFrame"),
        ("handles", Spent),
        ("handles", None),
        ("handles", ("putFrame", 5)),
        ("handles", ("",)),
        ("handles", (int,)),
        ("handles", (_Wireless,)),
        ("version", "x"),
        ("version", -1),
        ("version", True),
        ("version", 2**70),
        ("parameters", {"size": object()}),
        ("parameters", {"size": 0.5}),
        ("parameters", {"size": 2**70}),
        ("parameters", {5: "size"}),
        ("parameters", {"size": "\ud800"}),
        ("parameters", None),
        ("parameters", property(lambda _: 1 // 0)),
    ],
)
def test_what_a_projection_says_of_itself_is_checked(field: str, value: object) -> None:
    """A string of kinds was taken letter by letter, and the rest failed somewhere later."""
    own = type("Own", (_Named,), {"name": "own", "handles": (Spent,), field: value})
    with pytest.raises(InvalidInput, match=rf"^{field}.*projection 'own'"):
        cerata.open(":memory:", projections=[own])


def test_an_event_that_nobody_here_knows_may_be_handled() -> None:
    """It may be one of a later version, or of another program; it is given nothing meanwhile."""
    own = type("Own", (_Named,), {"name": "own", "handles": ("putFrme", "putFrame")})
    with cerata.open(":memory:", projections=[own]) as store:
        store.put_frame("x")
        assert dict(store.stream.projection("own").rows) == {}


@pytest.mark.parametrize("given", [None, Spending, "spending", 5, {"spending": Spending}])
def test_projections_are_a_list(given: object) -> None:
    """A class alone, or nothing, was a TypeError."""
    with pytest.raises(InvalidInput, match="must be a list"):
        cerata.open(":memory:", projections=given)  # type: ignore[arg-type]


def test_a_constructor_that_raises_is_named(tmp_path: Path) -> None:
    """With what it raised; and no file is made."""

    class Fussy(_Named):
        def __init__(self) -> None:
            raise OSError("no such model")

    with pytest.raises(InvalidInput, match=r"Fussy.* OSError: no such model"):
        cerata.open(tmp_path / "a.cera", projections=[Fussy])
    assert not (tmp_path / "a.cera").exists()


def test_what_is_no_projection_is_refused() -> None:
    """The message says what to pass."""
    with pytest.raises(InvalidInput, match=r"cerata\.RowProjection"):
        cerata.open(":memory:", projections=[str])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="taken"):
        cerata.open(":memory:", projections=[Spending, Spending])


def test_a_scope_does_not_see_the_rows_of_all() -> None:
    """What is narrowed may not be widened by a projection."""
    store = cerata.open(":memory:", scope={"tenant": "a"}, projections=[Spending])
    with store, pytest.raises(Unsupported):
        store.stream.projection("spending")


def test_a_built_in_one_has_its_own_reads() -> None:
    """It has no rows."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="built-in"):
        store.stream.projection("frames")


def test_verify_names_the_event_from_which_rows_in_memory_differ(tmp_path: Path) -> None:
    """Only the range was named: rows have no digest at every event."""
    with cerata.open(tmp_path / "a.cera", projections=[Spending]) as store:
        spend(store, 700)
        session_of(store).write([cerata.Draft(Spent(tag="rare", cents=5))])
        spend(store, 300)

        def damage(fold: Projection) -> None:
            assert isinstance(fold, RowFold)
            fold._own.rows["rare"] = 6

        fold_of(store).using("spending", None, damage)
        found = store.verify()
        assert [(one.projection, one.seq) for one in found.divergences] == [("spending", 701)]


class Taking(RowProjection[str, int]):
    """An impure fold: it takes a number out of the metadata that it reads."""

    name = "taking"
    handles = (PutFrame,)

    def apply(self, events: Sequence[FoldedEvent]) -> None:
        for event in events:
            assert isinstance(event.body, PutFrame)
            self.rows["n"] = event.body.metadata.pop("n")


def test_a_projection_that_changes_an_event_changes_no_other_state() -> None:
    """Built-in states decode a few new events once; code of the user gets events of its own."""
    with cerata.open(":memory:", projections=[Taking]) as store:
        for n in (1, 2, 3):
            frame = store.put_frame("a note", metadata={"n": n})
            assert dict(store.stream.projection("taking").rows) == {"n": n}
            found = store.frames(where=cerata.Filter(metadata={"n": n}))
            assert [one.id for one in found] == [frame.id]
        assert store.verify().ok
