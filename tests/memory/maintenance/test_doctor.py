"""The doctor says what is wrong and writes nothing; repair does what it says and loses nothing."""

from pathlib import Path

import numpy as np
import pytest

import cerata
from cerata.engine.events import Draft, UnknownBody
from cerata.engine.format.toc import Ref
from cerata.memory.maintenance.doctor import Cure, diagnose, repair
from cerata.replay.checkpoint import chunk_refs

from ...inside import log_of

pytestmark = pytest.mark.unwatched("damages files")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of three segments and their checkpoints: events 1 and 2, 3, and 4 to 6."""
    path = tmp_path / "m.cera"
    with cerata.open(path) as store:
        for texts in (["one", "two"], ["three"], ["four", "five", "six"]):
            store.put_frames([f"Note {text}." for text in texts])
            store.checkpoint()
    return path


def segments(path: Path) -> list[Ref]:
    with cerata.open(path, mode="r") as store:
        return list(log_of(store).reader.segment_refs(log_of(store).snapshot))


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 4
    path.write_bytes(data)


def cures(path: Path) -> list[Cure]:
    """Return the cures of what the doctor finds; the file is as before."""
    before = path.read_bytes()
    found = diagnose(str(path))
    assert path.read_bytes() == before
    cured = [one.cure for one in found.findings]
    assert found.healthy == (set(cured) <= {Cure.NOTHING})
    return cured


def test_a_sound_file_is_healthy_and_left_alone(file: Path) -> None:
    """And repair says so without a write."""
    before = file.read_bytes()
    assert cures(file) == []
    assert repair(str(file)).done == ()
    assert file.read_bytes() == before


@pytest.mark.parametrize("page", [0, 1])
def test_a_bad_header_page_is_mended_in_place(file: Path, page: int) -> None:
    """The other page has it all."""
    flip(file, 4096 * page + 100)
    assert set(cures(file)) == {Cure.OPENING}
    done = repair(str(file))
    assert done.done[0] == f"repaired by opening the file: header page {'AB'[page]} is damaged"
    assert done.after.healthy
    assert cures(file) == []
    with cerata.open(file) as store:
        assert len(store) == 6


def test_a_damaged_index_is_made_again_from_the_log(file: Path) -> None:
    """The log has everything; only time is lost."""
    with cerata.open(file, mode="r") as store:
        digests = store.stream.digests()
        toc = log_of(store).toc()
        [key] = [key for key in toc.projections if key.startswith("fulltext/")]
        ref = next(ref for ref, _ in chunk_refs(log_of(store).file, toc.saved(key)))
    flip(file, ref.offset + ref.length // 2)
    assert cures(file) == [Cure.REBUILDING]
    done = repair(str(file))
    assert "rebuilt fulltext from the log" in done.done
    assert done.after.healthy
    with cerata.open(file, mode="r") as store:
        assert store.stream.digests() == digests
        assert store.verify().ok


def test_what_is_made_of_the_events_is_mended_by_a_copy(file: Path, tmp_path: Path) -> None:
    """A table that no verb makes anew in place: the copy has all events, and makes its own."""
    with cerata.open(file) as store:
        store.put_frame("keyed", options=cerata.PutOptions(key="k"))
        store.checkpoint()
        ref = log_of(store).toc().keys[0]
    flip(file, ref.offset + ref.length // 2)
    assert set(cures(file)) == {Cure.COPYING}
    done = repair(str(file))
    assert (done.done, done.after.healthy) == ((), False)
    new = tmp_path / "new.cera"
    assert repair(str(file), to=str(new)).after.healthy
    with cerata.open(new) as store:
        assert store.head.seq == 7
        assert not store.put_frame("keyed", options=cerata.PutOptions(key="k")).added


class TestLoss:
    """Acknowledged events are unreadable."""

    @pytest.fixture
    def lost(self, file: Path) -> Path:
        """The file with event 3 unreadable."""
        ref = segments(file)[1]
        flip(file, ref.offset + ref.length // 2)
        return file

    def test_the_doctor_counts_what_is_left(self, lost: Path) -> None:
        """Before the damage and after it."""
        assert set(cures(lost)) == {Cure.LOSS}
        found = diagnose(str(lost))
        assert (found.events, found.readable, found.beyond) == (6, 2, 3)

    @pytest.mark.parametrize("count", [2, 100])
    def test_an_event_with_a_damaged_vector_is_lost(self, tmp_path: Path, count: int) -> None:
        """The doctor found every event readable, and proposed a copy that no event survived."""
        path = tmp_path / "v.cera"
        matrix = np.random.default_rng(3).standard_normal((count, 128)).astype(np.float32)
        with cerata.open(path) as store:
            store.put_frames(["before", "it"])
            store.put_frames(["text"] * count, vectors=cerata.Vectors(dense=matrix, space="s"))
            log_of(store).seal()
        flip(path, path.read_bytes().rindex(matrix[1].tobytes()) + 200)
        found = diagnose(str(path))
        assert (found.events, found.readable) == (2 + count, 2)
        assert set(cures(path)) == {Cure.LOSS}
        assert "The vector of event 4 is damaged" in [finding.what for finding in found.findings]
        new = str(tmp_path / "new.cera")
        with pytest.raises(cerata.Corrupt, match="2 of"):
            repair(str(path), to=new)
        assert repair(str(path), to=new, drop_damaged=True).after.healthy

    @pytest.mark.parametrize("size", [5_000, 100_000])
    def test_an_event_with_a_damaged_attachment_is_lost(self, tmp_path: Path, size: int) -> None:
        """A copy of the damaged bytes got checks of its own, and verify found it whole."""
        path, new = tmp_path / "b.cera", tmp_path / "new.cera"
        data = np.random.default_rng(3).bytes(size)
        with cerata.open(path) as store:
            store.put_frames(["before", "it"])
            store.put_frame(data, options=cerata.PutOptions(search_text="bytes"))
            body = UnknownBody(kind="unknownKind", kind_version=1, data=b"\x80")
            log_of(store).append([Draft(body, attachments=(b"not named" * 9,))])
            log_of(store).seal()
        whole = path.read_bytes()
        with cerata.open(path) as store:
            store.backup(new)
        assert diagnose(str(new)).healthy
        new.unlink()
        flip(path, whole.rindex(data) + 200)
        found = diagnose(str(path))
        assert (found.events, found.readable) == (4, 2)
        assert set(cures(path)) == {Cure.LOSS}
        with cerata.open(path) as store, pytest.raises(cerata.Corrupt, match="of event 3 is"):
            store.backup(new)
        assert repair(str(path), to=str(new), drop_damaged=True).after.healthy

    def test_nothing_is_dropped_unless_it_is_said(self, lost: Path, tmp_path: Path) -> None:
        """A repair that loses data in silence is worse than the damage."""
        before = lost.read_bytes()
        for options in ({}, {"to": str(tmp_path / "new.cera")}):
            with pytest.raises(cerata.Corrupt, match="2 of 6 events come before it"):
                repair(str(lost), **options)  # type: ignore[arg-type]
        with pytest.raises(cerata.InvalidInput):
            repair(str(lost), drop_damaged=True)
        assert lost.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["m.cera"]

    def test_what_comes_before_the_damage_is_kept_with_its_ids(
        self, lost: Path, tmp_path: Path
    ) -> None:
        """In a new file; the old one stays for whoever can do more."""
        before = lost.read_bytes()
        new = tmp_path / "new.cera"
        done = repair(str(lost), to=str(new), drop_damaged=True)
        # The two events, and the branch: with the lost events gone, it is another log.
        assert (done.after.healthy, done.after.events) == (True, 3)
        assert lost.read_bytes() == before
        with cerata.open(lost, mode="r") as old, cerata.open(new) as store:
            assert store.verify().ok
            assert [frame.text for frame in store.frames()] == ["Note two.", "Note one."]
            assert store.head.seq == 3
            assert store.at(2).head.chain == old.at(2).head.chain

    def test_a_truncated_file_is_diagnosed_too(self, lost: Path) -> None:
        """It cannot even be opened."""
        data = lost.read_bytes()
        lost.write_bytes(data[: segments(lost)[2].offset + 64])
        with pytest.raises(cerata.Corrupt):
            cerata.open(lost, mode="r")
        found = diagnose(str(lost))
        assert [one.cure for one in found.findings] == [Cure.LOSS]
        assert found.readable == 2


def test_a_backup_through_an_event_has_whole_batches(file: Path, tmp_path: Path) -> None:
    """Half a batch would be a state that never was."""
    with cerata.open(file) as store:
        for through, events in ((0, 0), (1, 0), (2, 2), (3, 3), (5, 3), (6, 6), (99, 6)):
            path = tmp_path / f"copy{through}.cera"
            store.backup(path, through=through)
            with cerata.open(path) as copy:
                assert copy.head.seq == events
                assert copy.head.chain == store.at(events).head.chain
                assert copy.verify().ok
