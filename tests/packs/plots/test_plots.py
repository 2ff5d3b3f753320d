"""Pictures: what is drawn is what was held true, nothing covers another, the same bytes again."""

import importlib
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import cerata
from cerata import Entity, InvalidInput, NotFound, Store, Unsupported, View
from cerata.memory.snapshot.reader import snapshot_of
from cerata.packs.plots import bitemporal as facts
from cerata.packs.plots import canvas, draw_facts, draw_graph
from cerata.packs.plots.bitemporal import lines_in, said, stretch
from cerata.packs.plots.canvas import Form, fitting, width_of
from cerata.packs.plots.regions import Region, is_endless, regions_of
from cerata.packs.plots.ring_layout import Way, places_of, rings_of
from cerata.projections.columnar.times import (
    BEGINNING,
    ENDLESS,
    Interval,
    to_datetime,
    to_microseconds,
)

from ...memory.facts.acts import Act
from ...memory.facts.histories import BATCHES, run
from ...memory.facts.questions import times_in
from ...memory.facts.world import events_of

DAY_US = 86_400_000_000


# --- regions -------------------------------------------------------------------------------------

histories = settings(
    max_examples=int(os.environ.get("CERATA_HISTORIES", "8")),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


@histories
@given(batches=BATCHES)
def test_a_region_is_where_a_fact_was_held_true(batches: Sequence[Sequence[Act]]) -> None:
    """At every known time and every instant, what the view of then says, and nothing else."""
    with run(batches, lambda _: None).open() as store:
        view = store.at("HEAD")
        every = view.facts(include_ended=True, include_retracted=True)
        regions = {one.fact.id: one for one in regions_of(snapshot_of(view), every)}
        events = events_of(view)
        last = {event.recorded: event.seq for event in events}
        instants = times_in(events)
        for known, seq in last.items():
            for instant in instants[:: max(1, len(instants) // 12)]:
                held = {one.id for one in store.at(seq).facts(valid_at=to_datetime(instant))}
                drawn = {
                    number
                    for number, region in regions.items()
                    if any(
                        piece.known.contains(known) and piece.valid.contains(instant)
                        for piece in region.pieces
                    )
                }
                assert drawn == held, (known, instant)


def regions(store: Store, **how: Any) -> list[Region]:
    view = store.at("HEAD")
    return regions_of(
        snapshot_of(view), view.facts(include_ended=True, include_retracted=True, **how)
    )


def test_a_value_ends_only_from_when_the_next_was_known(store: Store) -> None:
    store.graph.declare("lives in", functional=True)
    store.assert_fact("alice", "lives in", "paris", valid_from="2020-01-01")
    store.assert_fact("alice", "lives in", "rome", valid_from="2023-01-01")
    paris, rome = regions(store)
    assert [to_datetime(piece.valid.end).year for piece in paris.pieces] == [9999, 2023]
    assert paris.pieces[0].known.end == paris.pieces[1].known.start == rome.pieces[0].known.start
    assert is_endless(paris.pieces[1])


def test_what_was_retracted_ends_upwards(store: Store) -> None:
    fact = store.assert_fact("alice", "likes", "tea")
    store.retract_fact(fact)
    [region] = regions(store)
    [piece] = region.pieces
    assert not is_endless(piece)
    assert to_datetime(piece.known.end) == region.fact.known.end


def test_what_a_transaction_gathered_is_drawn_too(store: Store) -> None:
    with store.transaction():
        store.assert_fact("alice", "likes", "tea", valid_from="2020-01-01")
        view = store.history.view()
        [region] = regions_of(snapshot_of(view), view.facts())
        assert region.fact.id == -1
        assert faults_in(draw_facts(view, view.facts()), "svg") == []


# --- the calendar --------------------------------------------------------------------------------


def time(text: str) -> int:
    return to_microseconds(text)


@pytest.mark.parametrize(
    ("start", "end", "labels"),
    [
        ("2020-02-01", "2024-03-01", ["2021", "Jul 2021", "2022", "Jul 2022", "2023"]),
        ("2024-01-05", "2024-04-05", ["Feb 2024", "Mar 2024", "Apr 2024"]),
        ("2024-01-01T20:00+00:00", "2024-01-02T04:00+00:00", ["21:00", "22:00", "23:00"]),
        ("1200-06-01", "2024-01-01", ["1300", "1400", "1500"]),
        ("0001-01-01", "9999-12-31", ["1000", "2000", "3000"]),
    ],
)
def test_lines_are_where_years_months_days_and_hours_begin(
    start: str, end: str, labels: list[str]
) -> None:
    shown = Interval(time(start), time(end))
    found = lines_in(shown, 9)
    assert 3 <= len(found) <= 9
    assert [line.label for line in found if line.label in labels] == labels
    assert all(shown.start < line.time < shown.end for line in found)


@pytest.mark.parametrize(
    "times",
    [
        [],
        [BEGINNING, ENDLESS],
        [time("2024-01-01")],
        [time("0001-01-01"), time("9999-12-31")],
        [time("2024-01-01"), time("2024-01-01") + 1],
    ],
)
def test_a_stretch_holds_its_times_with_room_around(times: list[int]) -> None:
    shown = stretch(times)
    assert shown.end - shown.start >= DAY_US
    assert all(shown.start <= one <= shown.end for one in times if BEGINNING < one < ENDLESS)
    assert len(lines_in(shown, 9)) >= 1


def test_times_are_told_apart_as_briefly_as_can_be() -> None:
    day, minute = time("2024-01-01"), 60_000_000
    assert said([day, day + DAY_US]) == ["2024-01-01", "2024-01-02"]
    assert said([day, day + minute]) == ["2024-01-01 00:00", "2024-01-01 00:01"]
    assert said([day, day + 1]) == ["2024-01-01 00:00:00", "a moment later"]


# --- pictures of facts ---------------------------------------------------------------------------


def life(store: Store) -> View:
    """Facts of every sort: functional, retracted, open on each side, alike at one time."""
    store.graph.declare("lives in", functional=True)
    store.assert_fact("alice", "lives in", Entity("paris"), valid_from="2020-01-01")
    wrong = store.assert_fact("alice", "lives in", Entity("rome"), valid_from="2023-05-01")
    store.correct_fact(wrong, object=Entity("oslo"), confidence=0.5)
    for value in (
        "tea",
        "日本語",
        "$x$ <&> \x07",
        1.5,
        b"\x00",
        True,
        datetime(2024, 1, 1, tzinfo=UTC),
    ):
        store.assert_fact("alice", "likes", value, valid_from="open")
    store.assert_fact("al", "was", "x" * 500, valid_from="2021-01-01", valid_to="2021-01-02")
    return store.at("HEAD")


@pytest.mark.parametrize("form", canvas.FORMS)
def test_a_picture_is_whole(store: Store, form: Form) -> None:
    view = life(store)
    picture = draw_facts(view, view.facts(include_ended=True, include_retracted=True), form=form)
    assert faults_in(picture, form) == []


def faults_in(data: bytes, form: Form) -> list[str]:
    """Return what is wrong with the bytes of a picture, or nothing.

    An SVG can be parsed, has paths and no time of its making; a PNG is not empty.
    """
    if form == "svg":
        root = ET.fromstring(data)  # noqa: S314 - we have made it
        faults = {
            "no SVG": root.tag != "{http://www.w3.org/2000/svg}svg",
            "a time of its making": b"<dc:date>" in data,
            "too few paths": len(list(root.iter("{http://www.w3.org/2000/svg}path"))) <= 5,
        }
    elif not data.startswith(b"\x89PNG\r\n\x1a\n"):
        faults = {"no PNG": True}
    else:
        faults = {"too few different scan lines": len(colours_in(data)) <= 20}
    return [fault for fault, is_there in faults.items() if is_there]


def colours_in(png: bytes) -> set[bytes]:
    """Return the different scan lines of a PNG: a page of one colour has one."""
    packed, at = b"", 8
    width = struct.unpack(">I", png[16:20])[0]
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        packed += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    lines = zlib.decompress(packed)
    step = 4 * width + 1
    return {lines[start : start + step] for start in range(0, len(lines), step)}


DRAW = """
import sys
from examples import two_clocks
sys.argv = ["two_clocks", sys.argv[1]]
two_clocks.main()
"""


def test_the_same_state_gives_the_same_picture(checkout: Path, tmp_path: Path) -> None:
    """In another process with other hashes, and other settings of matplotlib's."""
    drawn = set[tuple[bytes, ...]]()
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "matplotlibrc").write_text(f"font.size: {10 + int(seed)}\nsvg.fonttype: none\n")
        subprocess.run(
            [sys.executable, "-W", "error", "-c", DRAW, str(folder)],
            cwd=folder,
            env={"PYTHONPATH": str(checkout), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            timeout=120,
        )
        drawn.add(tuple((folder / f"{name}.svg").read_bytes() for name in ("facts", "graph")))
    assert len(drawn) == 1


def test_no_region_covers_another_in_its_panel(store: Store) -> None:
    view = life(store)
    panels = facts._panels(
        regions_of(snapshot_of(view), view.facts(include_ended=True, include_retracted=True))
    )
    assert sum(len(panel.regions) for panel in panels) == 11
    assert [panel.title for panel in panels].count("alice · likes") == 1
    for panel in panels:
        assert not any(facts._cover(one, other) for one, other in combinations(panel.regions, 2))


def test_forty_facts_are_a_picture(store: Store) -> None:
    for number in range(40):
        store.assert_fact("it", f"is {number % 7}", number, valid_from=f"20{10 + number % 9}-01-01")
    assert faults_in(draw_facts(store, store.facts(), form="svg"), "svg") == []


@pytest.mark.parametrize(
    ("start", "end"), [("open", None), ("0001-01-01", "9999-12-31"), (None, None)]
)
def test_any_range_can_be_drawn(store: Store, start: str | None, end: str | None) -> None:
    store.assert_fact("it", "is", "so", valid_from=start, valid_to=end)
    assert faults_in(draw_facts(store, store.facts()), "svg") == []


def test_what_cannot_be_drawn_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = store.assert_fact("it", "is", "so")
    wrong: Any = [fact]
    with pytest.raises(InvalidInput, match="no facts to draw"):
        draw_facts(store, [])
    with pytest.raises(InvalidInput, match="items of the type Fact"):
        draw_facts(store, wrong)
    with pytest.raises(InvalidInput, match="A picture cannot be 'gif'"):
        draw_facts(store, store.facts(), form=cast("Form", "gif"))
    monkeypatch.setattr(facts, "FACTS_MAX", 0)
    with pytest.raises(InvalidInput, match="at most 0 facts, not 1"):
        draw_facts(store, store.facts())
    with cerata.open(":memory:") as other, pytest.raises(NotFound):
        draw_facts(other, store.facts())


def test_who_lacks_matplotlib_is_told_what_to_install(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.assert_fact("it", "is", Entity("so"))

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    caches = (canvas._matplotlib, canvas._part, canvas._rc, canvas._measure, canvas._font)
    for one in caches:
        one.cache_clear()
    said = r"pip install '\.\[plot\]'"
    with pytest.raises(Unsupported, match=said):
        draw_facts(store, store.facts())
    with pytest.raises(Unsupported, match=said):
        draw_graph(store, "it")
    monkeypatch.undo()
    for one in caches:
        one.cache_clear()
    assert draw_graph(store, "it")


# --- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["short", "a longer text that is cut", "W" * 1000, "日本語" * 9, ""]
)
def test_words_are_cut_to_fit(text: str) -> None:
    """Whole where there is room for all that is ever shown, else their beginning, else nothing."""
    whole = text[:200]
    for width in (0.01, 0.3, 1.0, 30.0):
        shown = fitting(text, 9, width)
        assert width_of(shown, 9) <= width or shown == ""
        assert shown in (whole, "") or (shown[-1] == "…" and whole.startswith(shown[:-1]))
    assert (fitting(text, 9, 0.01), fitting(text, 9, 30.0)) == ("", whole)


# --- the graph -----------------------------------------------------------------------------------


def connect(store: Store, count: int) -> None:
    for number in range(count):
        pair = ("hub", Entity(f"a thing of number {number}"))
        store.assert_fact(pair[0], "knows", pair[1])
        if number % 3 == 0:
            store.assert_fact(str(pair[1]), "leads to", Entity(f"leaf {number}"))


WAY = Way(None, "both", None)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 30, 70])
def test_no_entity_covers_another(store: Store, count: int) -> None:
    connect(store, count)
    rings = rings_of(snapshot_of(store), "hub", hops=2, entities_max=150, way=WAY)
    size = (1.9, 0.3)
    places = places_of(rings, lambda _: size)
    assert len(places) == 1 + count + -(-count // 3)
    for (x, y), (other_x, other_y) in combinations(places.values(), 2):
        assert abs(x - other_x) >= size[0] or abs(y - other_y) >= size[1]


def test_rings_are_of_hops_and_every_fact_between_is_drawn(store: Store) -> None:
    store.graph.assert_many(
        [
            ("alice", "knows", Entity("bob")),
            ("bob", "likes", Entity("alice")),
            ("alice", "knows", Entity("carl")),
            ("bob", "works with", Entity("carl")),
            ("carl", "owns", Entity("dog")),
            ("alice", "is", "no entity"),
        ]
    )
    rings = rings_of(snapshot_of(store), "alice", hops=2, entities_max=30, way=WAY)
    assert rings.hops == {"alice": 0, "bob": 1, "carl": 1, "dog": 2}
    assert rings.parent == {"bob": "alice", "carl": "alice", "dog": "carl"}
    assert [(one.first, one.second, one.there, one.back) for one in rings.joins] == [
        ("alice", "bob", ("knows",), ("likes",)),
        ("alice", "carl", ("knows",), ()),
        ("bob", "carl", ("works with",), ()),
        ("carl", "dog", ("owns",), ()),
    ]


def test_entities_of_one_name_in_two_tenants_are_one_here(store: Store) -> None:
    """As near as the nearer, also where what leads on is the other."""
    for tenant, names in (("t1", "abcd"), ("t2", "acb")):
        for one, other in pairwise(names):
            store.assert_fact(
                one, "to", Entity(other), options=cerata.FactOptions(scope={"tenant": tenant})
            )
    rings = rings_of(snapshot_of(store), "a", hops=3, entities_max=30, way=WAY)
    assert rings.hops == {"a": 0, "b": 1, "c": 1, "d": 3}
    assert faults_in(draw_graph(store, "a", hops=3), "svg") == []


def test_what_is_left_out_is_counted(store: Store) -> None:
    connect(store, 12)
    rings = rings_of(snapshot_of(store), "hub", hops=1, entities_max=5, way=WAY)
    assert (len(rings.hops), rings.left_out) == (5, 8)


@pytest.mark.parametrize("form", canvas.FORMS)
@pytest.mark.parametrize("count", [1, 40])
def test_a_graph_is_a_picture(store: Store, form: Form, count: int) -> None:
    connect(store, count)
    store.graph.name("hub", kind="center of it all")
    assert faults_in(draw_graph(store, "hub", hops=2, form=form), form) == []


def test_a_graph_is_narrowed_as_a_walk_is(store: Store) -> None:
    store.assert_fact("a", "was", Entity("b"), valid_from="2000-01-01", valid_to="2001-01-01")
    store.assert_fact("c", "is", Entity("a"))
    for how, names in (
        ({"valid_at": "2000-06-01"}, {"a", "b"}),
        ({"predicate": "is"}, {"a", "c"}),
        ({"direction": "out"}, {"a", "b"}),
    ):
        way = WAY._replace(**cast("dict[str, Any]", how))
        rings = rings_of(snapshot_of(store), "a", hops=3, entities_max=9, way=way)
        assert set(rings.hops) == names


def test_what_has_ended_is_drawn_otherwise(store: Store) -> None:
    """A former home looked like the present one."""
    store.assert_fact("a", "lived in", Entity("b"), valid_from="open", valid_to="2001-01-01")
    store.assert_fact("a", "lives in", Entity("c"), valid_from="2001-01-01")
    store.assert_fact("a", "owns", Entity("b"), valid_from="open", valid_to="2001-01-01")
    store.assert_fact("a", "owns", Entity("d"), valid_from="open", valid_to="2001-01-01")
    store.assert_fact("a", "owns", Entity("d"), valid_from="2002-01-01")
    store.assert_fact("a", "left", Entity("d"), valid_from="1999-01-01", valid_to="2000-01-01")
    joins = rings_of(snapshot_of(store), "a", hops=1, entities_max=9, way=WAY).joins
    assert [(join.second, join.there, join.is_ended) for join in joins] == [
        ("b", ("lived in (ended)", "owns (ended)"), True),
        ("c", ("lives in",), False),
        ("d", ("owns", "left (ended)"), False),
    ]
    picture = draw_graph(store, "a").decode()
    assert picture.count("stroke-dasharray") == 1
    then = rings_of(
        snapshot_of(store), "a", hops=1, entities_max=9, way=WAY._replace(valid_at="2000-06-01")
    )
    assert [(join.there, join.is_ended) for join in then.joins] == [
        (("lived in", "owns"), False),
        (("owns",), False),
    ]
    assert b"stroke-dasharray" not in draw_graph(store, "a", valid_at="2000-06-01")


def test_a_graph_of_nothing_is_refused(store: Store) -> None:
    store.graph.name("alone")
    with pytest.raises(InvalidInput, match="No fact joins 'alone'"):
        draw_graph(store, "alone")
    with pytest.raises(NotFound):
        draw_graph(store, "nobody")
    with pytest.raises(InvalidInput, match="cannot show 151 entities"):
        draw_graph(store, "alone", entities_max=151)
