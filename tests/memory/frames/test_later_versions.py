"""Events of later versions are kept, and a reader that cannot apply them names them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import cerata
from cerata import Draft, Store
from cerata.cli import main
from cerata.engine.events import UnknownBody
from cerata.memory.maintenance.doctor import diagnose

from ...inside import log_of

GREEN, BLACK, SCOPED = 1, 2, 3
PUT, DELETE, SUPERSEDE, OWN = 4, 5, 6, 7


def later(kind: str, version: int = 2, **fields: Any) -> Draft:
    return Draft(
        UnknownBody(kind=kind, kind_version=version, data=msgspec.msgpack.encode(fields)),
        causation=None,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that a later Cerata has written to."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        store.put_frames(["green tea", "black tea"])
        store.put_frame("white tea", options=cerata.PutOptions(scope={"user": 1}))
        log_of(store).append(
            [
                later("putFrame", text="red tea", flavour="smoky"),
                later("deleteFrame", frame=GREEN, reason="stale"),
                later("supersedeFrame", old=BLACK, new=-1, how="merge"),
            ]
        )
        log_of(store).append([later("brewing", 1, minutes=3)])
    return path


@pytest.fixture(params=["ring", "sealed"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[Store]:
    with cerata.open(path) as opened:
        if request.param == "sealed":
            opened.checkpoint()
        yield opened


def test_a_frame_names_the_events_that_were_not_applied(store: Store) -> None:
    """A later deletion was ignored without a word, and a later frame was called erased."""
    assert store.frame(GREEN).active
    assert store.frame(GREEN).unread == (DELETE,)
    assert store.frame(BLACK).unread == (SUPERSEDE,)
    assert store.frame(SCOPED).unread == ()
    put = store.frame(PUT)
    assert put.kind == "putFrame version 2"
    assert put.unread == (PUT, SUPERSEDE)
    assert [hit.frame.unread for hit in store.search("green")] == [(DELETE,)]
    assert [frame.unread for frame in store.history.of(BLACK)] == [(SUPERSEDE,)]
    assert store.frame(GREEN).to_dict()["unread"] == [DELETE]
    assert "unread" not in store.frame(SCOPED).to_dict()
    # Before the event there was nothing to apply.
    assert store.at(PUT).frame(GREEN).unread == ()
    # The event is of the tenant's, and of no narrower scope.
    narrow = (("tenant", "default"), ("user", 1))
    assert store.history.view().within(narrow).frame(SCOPED).unread == ()


def test_info_and_doctor_count_unread_events(store: Store, path: Path) -> None:
    """No result degrades silently: both list the types and versions."""
    assert store.upkeep.info()["unread"] == [
        {"type": "brewing", "version": 1, "events": 1},
        {"type": "deleteFrame", "version": 2, "events": 1},
        {"type": "putFrame", "version": 2, "events": 1},
        {"type": "supersedeFrame", "version": 2, "events": 1},
    ]
    diagnosis = diagnose(str(path))
    assert diagnosis.healthy
    assert [finding.what for finding in diagnosis.findings] == [
        "1 events are brewing of version 1",
        "1 events are deleteFrame of version 2",
        "1 events are putFrame of version 2",
        "1 events are supersedeFrame of version 2",
    ]
    assert store.verify().ok


def test_the_log_gives_the_body_as_it_is(store: Store) -> None:
    """Type and version are known, the meaning is not."""
    body = next(store.log(DELETE, DELETE)).body
    assert isinstance(body, UnknownBody)
    assert (body.kind, body.kind_version) == ("deleteFrame", 2)
    assert body.fields() == {"frame": GREEN, "reason": "stale"}


@pytest.mark.parametrize("verb", ["log", "show 1", "show 4", "time history 1", "list", "info"])
def test_every_verb_shows_it(verb: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line printed "erased", or nothing."""
    words = verb.split()
    assert main(["-f", str(path), *words]) == 0
    text = capsys.readouterr().out
    assert "erased" not in text
    assert "unread" in text or "version 2 of deleteFrame" in text
    assert main(["-f", str(path), *words, "--json"]) == 0
    plain = capsys.readouterr().out
    json.loads(plain)
    assert '"unread"' in plain or "version 2 of deleteFrame" in plain


def test_a_body_that_cannot_be_decoded_is_no_erased_one(tmp_path: Path) -> None:
    """Another writer may leave fields of the wrong type, or none that are fields."""
    with cerata.open(tmp_path / "memory.cera") as store:
        store.put_frame("green tea")
        odd = UnknownBody(kind="deleteFrame", kind_version=9, data=msgspec.msgpack.encode([1, "x"]))
        log_of(store).append([Draft(odd), later("deleteFrame", 9, frame="1")])
        assert store.frame(1).unread == ()
        assert store.upkeep.info()["unread"] == [{"type": "deleteFrame", "version": 9, "events": 2}]
        assert store.verify().ok


def test_a_damaged_log_is_not_counted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A count of what is left would pass for a count of all."""
    with cerata.open(path) as store:
        store.checkpoint()
        store.put_frame("tea again")
        store.checkpoint()
        ref, _ = log_of(store).reader.segment_refs(log_of(store).snapshot)
    data = bytearray(path.read_bytes())
    data[ref.offset + 64 : ref.offset + ref.length - 64] = bytes(ref.length - 128)
    path.write_bytes(data)
    with cerata.open(path, mode="r") as store:
        assert store.upkeep.info()["unread"] is None
    assert main(["-f", str(path), "info"]) == 0
    assert "not counted" in capsys.readouterr().out
