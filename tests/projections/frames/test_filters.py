"""Filters: exact, as of any event, and refused where they cannot mean anything."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.engine.errors import InvalidInput
from cerata.engine.events import PutFrame
from cerata.projections.columnar.hash_index import SORT_SIZE_MIN
from cerata.projections.columnar.sorted_rows import StringOrder, bounds
from cerata.projections.columnar.strings import Strings
from cerata.projections.columnar.typed_values import ValueType, number_key, number_ranges
from cerata.projections.frames.filters import Filter
from cerata.projections.frames.projection import FramesProjection

from ..histories import Folded, events_of, fold, histories, metadata_values
from .filter_model import Pair, filters


@given(histories, st.lists(filters, min_size=1, max_size=4))
def test_a_filter_is_the_predicate_that_it_says_at_every_n(
    events: list[Folded], pairs: list[Pair]
) -> None:
    # The reference is plain Python over the events themselves.
    frames = FramesProjection()
    frames.apply(events)
    table = frames.snapshot()
    puts = [event for event in events if event.type == "putFrame"]
    for where, passes in pairs:
        for n in range(len(events) + 1):
            expected = [passes(put) for put in puts if put.seq <= n]
            assert table.mask(where, n).tolist() == expected


@given(histories, st.lists(st.integers(0, 40), max_size=3), filters, st.integers(0, 9))
def test_sorted_postings_answer_as_a_scan_does_and_show_no_later_row(
    events: list[Folded], cuts: list[int], pair: Pair, least: int
) -> None:
    # Sorting covers what the newest snapshot has; older ones ask afterwards.
    where, frames = pair[0], FramesProjection()
    snapshots = [frames.snapshot()]
    for cut in sorted(cuts):
        frames.apply(events[frames.seq : cut])
        snapshots.append(frames.snapshot())
    expected = [table.mask(where, table.seq).tolist() for table in snapshots]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cerata.projections.frames.attributes.SORT_SIZE_MIN", least)
        patch.setattr("cerata.projections.columnar.sorted_rows.SORT_SIZE_MIN", least)
        sorted_first = [table.mask(where, table.seq).tolist() for table in snapshots]
        sorted_last = [table.mask(where, table.seq).tolist() for table in reversed(snapshots)]
    assert sorted_first == expected
    assert sorted_last == expected[::-1]


def test_many_rows_are_sorted_piece_by_piece_and_still_all_found() -> None:
    # Small histories stay below the size at which postings are sorted; this one passes it often.
    bodies = [
        PutFrame(text="", tags=(f"t{i % 7}",), metadata={"i": i, "name": f"n{i * 7919 % 5003}"})
        for i in range(20_000)
    ]
    events, frames = events_of(bodies), FramesProjection()
    for end in (3_000, 9_000, 9_010, 20_000):
        frames.apply(events[frames.seq : end])
        table = frames.snapshot()
        for n in (end, end // 2):
            number = np.arange(n)
            assert table.mask(Filter(tags=["t3"]), n).tolist() == (number % 7 == 3).tolist()
            where = Filter(metadata={"i": (">=", 1_000)}) & Filter(metadata={"i": ("<", 5_000.5)})
            inside = (number >= 1_000) & (number <= 5_000)
            assert table.mask(where, n).tolist() == inside.tolist()
            named = [f"n{i * 7919 % 5003}" < "n2" for i in range(n)]
            assert table.mask(Filter(metadata={"name": ("<", "n2")}), n).tolist() == named


def test_postings_stay_few_sorted_pieces_however_frames_come() -> None:
    # A mask costs a bisection of each piece and a scan of the rest: both must stay small.
    frames = FramesProjection()
    for seq, event in enumerate(events_of([PutFrame(text="", tags=("a",))] * 30_000), start=1):
        frames.apply([event])
        if seq % 100 == 0:
            frames.snapshot().mask(Filter(tags=["a"]), seq)
    covered, by_group = frames._columns.attributes.index._state
    assert 30_000 - covered <= SORT_SIZE_MIN
    assert [len(one.pieces) <= 4 for one in by_group.values()] == [True]


def test_what_an_erased_frame_said_passes_no_test_of_it() -> None:
    frames = fold(events_of([PutFrame(text="a", kind="note")]))[0].snapshot()
    assert frames.mask(Filter(), 1).tolist() == [True]
    assert frames.mask(Filter(kind="note"), 0).tolist() == []


def test_filters_are_values() -> None:
    # A view keeps the masks of filters that it has met.
    assert Filter(kind="note", tags=["a"]) == Filter(tags=("a",), kind=["note"])
    assert hash(Filter(metadata={"n": 1})) == hash(Filter(metadata={"n": ("=", 1)}))
    assert Filter(metadata={"n": 1}) != Filter(metadata={"n": True})
    assert ~~Filter(kind="note") == Filter(kind="note")
    assert Filter() & Filter(kind="note") == Filter(kind="note")
    with pytest.raises(AttributeError):
        Filter().expression = Filter().expression  # type: ignore[misc]


def test_a_filter_as_plain_values_says_all_of_it() -> None:
    where = Filter(
        tags=["a"],
        kind=("note", "text"),
        scope={"tenant": "t"},
        metadata={"year": (">=", 2024), "draft": ("exists", False), "lang": ("in", ["en", "el"])},
        created=("2026-03-01", datetime(2026, 4, 1, tzinfo=UTC)),
        uri_prefix="file:",
    )
    assert where.to_dict() == {
        "all": [
            {"field": "tag", "operator": "=", "value": "a"},
            {"field": "kind", "operator": "in", "value": ["note", "text"]},
            {"field": "scope.tenant", "operator": "=", "value": "t"},
            {"field": "metadata.year", "operator": ">=", "value": 2024},
            {"not": {"field": "metadata.draft", "operator": "exists", "value": True}},
            {
                "any": [
                    {"field": "metadata.lang", "operator": "=", "value": "en"},
                    {"field": "metadata.lang", "operator": "=", "value": "el"},
                ]
            },
            {
                "field": "created",
                "from": "2026-03-01T00:00:00+00:00",
                "before": "2026-04-01T00:00:00+00:00",
            },
            {"field": "uri", "operator": "prefix", "value": "file:"},
        ]
    }
    assert Filter().to_dict() == {"all": []}


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"tags": "a"}, "tags must be a list of strings, not one string"),
        ({"tags": 3}, "must be a list"),
        ({"labels": [3]}, "must be a string"),
        ({"kind": []}, "no frame would match"),
        ({"kind": 3}, "must be a list"),
        ({"role": [None]}, "must be a string"),
        ({"uri_prefix": b"x"}, "must be a string"),
        ({"tags": ["\ud800"]}, "not valid Unicode"),
        ({"scope": [("a", 1)]}, "must be a mapping"),
        ({"scope": {"a": 1.5}}, "a string, an integer or a bool, not float"),
        ({"metadata": {3: 1}}, "must be a string"),
        ({"metadata": {"n": ("~", 1)}}, "one of =, !=, <, <=, >, >=, in, contains, exists"),
        ({"metadata": {"n": ("<",)}}, "operator, value"),
        ({"metadata": {"n": ("<", None)}}, "has no order"),
        ({"metadata": {"n": (">", True)}}, "has no order"),
        ({"metadata": {"n": ("exists", 1)}}, "must be True or False, not 1"),
        ({"metadata": {"n": ("in", "abc")}}, "takes a list"),
        ({"metadata": {"n": float("nan")}}, "cannot be compared"),
        ({"metadata": {"n": datetime(2026, 3, 1, tzinfo=UTC)}}, "its ISO string"),
        ({"metadata": {"n": [1]}}, "('contains', value)"),
        ({"metadata": {"n": {}}}, "must be a map of tests"),
        ({"metadata": {"n": {"a": {1: 2}}}}, "must be a string"),
        ({"metadata": {"n": ("contains", [1])}}, "cannot be compared"),
        ({"created": ["2026"]}, "Pass (start, end)"),
        ({"created": "soon"}, "is not a time"),
        ({"created": "03/04/2026"}, "Write the date as 2026-04-03 or 2026-03-04"),
        ({"created": ("yestrday", None)}, "is not a time"),
        ({"created": (datetime(2026, 3, 1), None)}, "has no zone"),  # noqa: DTZ001
        ({"recorded": ("2026-03-01T10:00:00", None)}, "has no zone"),
        ({"content": ("soon", None)}, "is not a time"),
        ({"content": (1, None)}, "must be an aware datetime, a date or a string, not int"),
        ({"created": ("2026-03-02", "2026-03-01")}, "before its start"),
    ],
)
def test_what_means_nothing_is_refused_and_explained(said: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Filter(**said)
    assert what in str(raised.value)


numbers = metadata_values.filter(
    lambda value: isinstance(value, int | float) and not isinstance(value, bool)
)
wide_numbers = (
    numbers
    | st.integers(-(2**66), 2**66)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from((10**400, -(10**400)))
)


@given(numbers | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e300, 1e300), wide_numbers)
def test_numbers_compare_exactly_by_their_keys(value: float, bound: float) -> None:
    # Python compares int and float exactly, without rounding the int.
    kind, key = number_key(value)
    assert kind is not ValueType.OTHER
    for operator, expected in (
        ("=", value == bound),
        ("<", value < bound),
        ("<=", value <= bound),
        (">", value > bound),
        (">=", value >= bound),
    ):
        ranges = number_ranges(operator, bound)
        assert any(k is kind and low <= key <= high for k, low, high in ranges) is expected


_texts = st.text(max_size=20) | st.text("a\0\x01\xff", max_size=17)


@given(st.lists(_texts, unique=True, min_size=1), _texts, st.lists(st.integers(0, 30), max_size=3))
def test_strings_compare_by_code_point(texts: list[str], bound: str, cuts: list[int]) -> None:
    # Asked while strings come, so that some are sorted in pieces and some not at all.
    strings = Strings()
    order = StringOrder(strings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cerata.projections.columnar.sorted_rows.SORT_SIZE_MIN", 3)
        for start, end in pairwise([0, *sorted(cuts), len(texts)]):
            for text in texts[start:end]:
                strings.code(text, 1)
            codes = strings.settle()
            assert [strings.text(code) for code in codes] == texts[start:end]
            order.between(b"", None)
        every = list(range(1, len(texts) + 1))
        assert [strings.find(text) for text in texts] == every
        signs = [(text > bound) - (text < bound) for text in texts]
        assert strings.compare(np.array(every), bound.encode()).tolist() == signs
        for operator, expected in (
            ("<", [sign < 0 for sign in signs]),
            ("<=", [sign <= 0 for sign in signs]),
            (">", [sign > 0 for sign in signs]),
            (">=", [sign >= 0 for sign in signs]),
            ("prefix", [text.startswith(bound) for text in texts]),
        ):
            codes = order.between(*bounds(operator, bound)).tolist()
            assert codes == [code for code, one in zip(every, expected, strict=True) if one]


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_strings_that_are_forgotten_keep_their_codes(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    # The memory of codes is bounded; beyond, the columns themselves are asked.
    monkeypatch.setattr("cerata.projections.columnar.strings._KEPT_MAX", 10)
    monkeypatch.setattr("cerata.projections.columnar.hash_index.SORT_SIZE_MIN", 20)
    strings = Strings()
    texts = [f"text {i * 31 % 197}" for i in range(500)]
    codes: list[int] = []
    for start in range(0, len(texts), batch):
        given = [strings.code(text, 1) for text in texts[start : start + batch]]
        settled = strings.settle()
        codes += [code if code > 0 else settled[-code - 1] for code in given]
    first = list(dict.fromkeys(texts))
    assert codes == [first.index(text) + 1 for text in texts]
    assert [strings.text(code) for code in codes] == texts
    assert len(strings) == len(first)


X, Y = Filter(tags=["x"]), Filter(metadata={"n": (">", 3)})


@pytest.mark.parametrize(
    "where",
    [
        Filter(),
        Filter(tags=[], labels=(), metadata={}, scope={}, absent=[]),
        Filter(uri_prefix=""),
        Filter() & Filter(),
        X | Filter(),
        ~~Filter(),
        ~(X & ~Filter()),
        X | ~X,
        ~(X & ~X),
        (X & Y) | (X & ~Y) | ~X,
        X | (Y | ~(X & Y)),
    ],
    ids=lambda where: str(where.to_dict())[:60],
)
def test_a_filter_that_tests_nothing_deletes_nothing(where: Filter) -> None:
    """Lists that became empty on the way would close the whole memory."""
    assert where.is_universal
    with cerata.open(":memory:") as store:
        store.put_frame("a", tags=["x"], metadata={"n": 4}, uri="note:1")
        head = store.head
        with pytest.raises(InvalidInput, match="where admits every frame"):
            store.delete(where=where)
        assert store.head == head


@pytest.mark.parametrize("where", [X, X & Filter(), X | Y, ~X, X & ~X, ~Filter(), X & (Y | ~Y)])
def test_a_filter_with_a_test_deletes_what_it_admits(where: Filter) -> None:
    """Also if it happens to admit every frame of this memory, or none."""
    assert not where.is_universal
    with cerata.open(":memory:") as store:
        store.put_frame("a", tags=["x"], metadata={"n": 4})
        count = store.count(where)[0]
        assert len(store.delete(where=where).deleted) == count


def test_a_wide_filter_is_judged_by_its_structure() -> None:
    """The combinations of many tests are not tried, so the judgement stays quick."""
    many = [Filter(tags=[str(number)]) for number in range(2_000)]
    wide = many[0]
    for each in many[1:]:
        wide |= each
    assert not wide.is_universal
    assert (wide | Filter()).is_universal
    assert (~(wide & ~Filter())).is_universal
