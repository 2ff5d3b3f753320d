"""Tags: names for ends of batches, given once and for good."""

from pathlib import Path

import pytest

import cerata
from cerata.cli import main
from cerata.engine.events import PutTag
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.view import View
from cerata.replay.fold import replay

from ...inside import log_of


def test_a_tag_names_the_end_of_a_batch_for_good(tmp_path: Path) -> None:
    """It is a basis like any other, after reopening too, with and without a checkpoint."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        first = store.put_frames(["a", "b"])
        receipt = store.history.tag("v1")
        assert receipt.seqs == (3,)
        store.put_frame("c")
        store.history.tag("release/2026.1", at=first)
        store.checkpoint()
        store.history.tag("later", at="HEAD~1")
        assert store.history.tags() == {"later": 4, "release/2026.1": 2, "v1": 2}
        assert store.at("v1").basis == 2
        assert [frame.text for frame in store.at("v1").frames()] == ["b", "a"]
    with cerata.open(path, mode="r") as store:
        assert store.at("later").basis == 4
        assert store.at(4).history.tags() == {"v1": 2}
        assert store.at(2).history.tags() == {}
        for n in range(store.head.seq + 1):
            assert (
                store.at(n).history.tags()
                == View(Snapshot(log_of(store), replay(log_of(store), n), n)).history.tags()
            )
        assert store.verify().ok


@pytest.mark.parametrize("name", ["HEAD", "1st", "", "a b", "v~1", "ü", "x" * 101, "2026-01-01", 7])
def test_a_name_that_could_be_something_else_is_refused(name: str) -> None:
    """A basis is read without asking which kind it is."""
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with pytest.raises(cerata.InvalidInput, match="cannot be named"):
            store.history.tag(name)
        assert store.head.seq == 1


def test_a_name_is_never_used_again(tmp_path: Path) -> None:
    """Not by this store, nor by one that had not seen it, nor twice in one transaction."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store, cerata.open(path) as other:
        store.put_frame("a")
        assert other.history.tags() == {}
        store.history.tag("v1")
        for one in (store, other):
            with pytest.raises(cerata.Conflict, match="already"):
                one.history.tag("v1", at=1)
        with pytest.raises(cerata.Conflict, match="already"):
            store.append(PutTag(tag="v2", at=1), PutTag(tag="v2", at=1))
        assert store.history.tags() == {"v1": 1}
        receipt = store.append(PutTag(tag="v3", at=1), key="k")
        assert store.append(PutTag(tag="v3", at=1), key="k").seqs == receipt.seqs


def test_a_tag_inside_a_batch_or_beyond_the_log_is_refused() -> None:
    """A batch is there whole or not at all, so nothing stands at its middle."""
    with cerata.open(":memory:") as store:
        with pytest.raises(cerata.NotFound):
            store.history.tag("empty")
        store.put_frames(["a", "b", "c"])
        with pytest.raises(cerata.InvalidInput, match="inside a batch"):
            store.history.tag("middle", at=2)
        with pytest.raises(cerata.NotFound):
            store.history.tag("beyond", at=9)
        with pytest.raises(cerata.NotFound, match="no tag 'middle'"):
            store.at("middle")


def test_tenants_have_names_of_their_own(tmp_path: Path) -> None:
    """One tenant's names say nothing of another's."""
    path = tmp_path / "memory.cera"
    for number, tenant in enumerate(("acme", "umbra"), start=1):
        with cerata.open(path, scope={"tenant": tenant}) as store:
            store.put_frame(tenant)
            store.history.tag("v1")
            assert store.at("v1").basis == 2 * number - 1
            assert store.history.tags() == {"v1": 2 * number - 1}
    with cerata.open(path, scope={"tenant": "third"}, mode="r") as store:
        assert store.history.tags() == {}
        with pytest.raises(cerata.NotFound):
            store.at("v1")
    with cerata.open(path) as store:
        assert store.at("v1").basis == 1
        store.history.tag("v1")
        assert store.at("v1").basis == 4


def test_tags_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named, listed, looked back at, and seen in the log."""
    file = str(tmp_path / "m.cera")

    def run(*arguments: str) -> tuple[int, str]:
        code = main([*arguments, "-f", file])
        return code, capsys.readouterr().out

    assert run("time", "tag", "v1")[0] == cerata.NotFound.exit_code
    assert not Path(file).exists()
    run("put", "harbour one")
    assert run("time", "tag", "v1") == (0, f"v1 names event 1 of {file}\n")
    run("put", "harbour two")
    assert run("time", "tag") == (0, "      1  v1\n")
    assert run("time", "tag", "--at", "1") == (0, "There are no tags.\n")
    assert run("time", "tag", "--jsonl") == (0, '{"tag": "v1", "at": 1}\n')
    assert "two" not in run("search", "harbour", "--at", "v1")[1]
    assert "v1 names event 1" in run("log")[1]
    assert run("time", "tag", "v1")[0] == cerata.Conflict.exit_code
    assert run("time", "tag", "again", "--at", "v1")[0] == 0
    assert run("search", "harbour", "--at", "v9")[0] == cerata.NotFound.exit_code


def test_a_log_that_does_not_go_back_so_far_says_how_far_it_does() -> None:
    """``HEAD~9`` of two batches said that there are fewer, not how many."""
    with cerata.open(":memory:") as store:
        store.put_frames(["one", "two"])
        store.put_frame("three")
        assert store.at("HEAD~2").basis == 0
        with pytest.raises(cerata.NotFound, match=r"no HEAD~9: .* 2 batches\. Pass HEAD~2,"):
            store.at("HEAD~9")
