"""Files whose every check holds and that lie all the same: typed errors, no crash, hang or code."""

import sys
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerata.engine.disk.environment import Environment
from cerata.engine.disk.memory_storage import MemoryNode, MemoryStorage
from cerata.engine.events import UNDECODABLE, UnknownBody
from cerata.engine.open import open_log
from cerata.fault_injection.stories.engine_workloads import PATH

from ..crash.sweeps import hostile_files as decoders
from ..crash.sweeps.hostile_files import (
    Patch,
    Unwanted,
    blind,
    fuzz,
    patched,
    read_everything,
)

pytestmark = pytest.mark.unwatched("its files lie")

CORPUS = sorted((Path(__file__).parent / "hostile").glob("*.patches"))
"""Each file is what a fuzzer found once: a list of patches, MessagePack."""


def test_hostile_files_are_refused_or_read(seed: int) -> None:
    """A share of what the sweep tries."""
    tally = fuzz(60, seed=seed)
    sys.stdout.write(f"\n{tally}\n")
    assert tally.problems == []
    assert 5 < tally.refused < tally.files == 60


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(path: Path) -> None:
    """Every find, for ever."""
    read_everything(patched(msgspec.msgpack.decode(path.read_bytes(), type=list[Patch])))


def test_the_corpus_is_there() -> None:
    """A folder that is not found would pass in silence."""
    assert len(CORPUS) >= 3


_PATCHES = st.lists(
    st.builds(
        Patch, st.integers(0, len(decoders.specimen()) - 1), st.binary(min_size=1, max_size=24)
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60)
@given(_PATCHES)
def test_no_patches_of_any_kind_do_harm(patches: list[Patch]) -> None:
    """As Hypothesis draws them, which shrinks what it finds."""
    read_everything(patched(patches))


def test_text_that_is_none_is_an_unknown_body() -> None:
    """Invalid UTF-8 in a payload came through as Python's own error, past every handler."""
    data = bytearray(decoders.specimen())
    data[data.index(b"d xxxx") + 10] = 0xFF
    storage = MemoryStorage()
    storage._nodes[PATH] = MemoryNode(1)
    storage._nodes[PATH].data = data
    with blind(), open_log(PATH, mode="r", environment=Environment(storage)) as log:
        bodies = [event.body for event in log.read()]
    assert [body.kind for body in bodies if isinstance(body, UnknownBody)] == ["thing", "putFrame"]


def test_without_the_error_of_text_the_sweep_finds_it(seed: int) -> None:
    """What msgspec raises has its own class for all but invalid UTF-8."""
    forgotten = tuple(one for one in UNDECODABLE if one is not UnicodeDecodeError)
    with (
        mock.patch("cerata.engine.events.UNDECODABLE", forgotten),
        mock.patch("cerata.engine.codec.UNDECODABLE", forgotten),
    ):
        assert fuzz(120, seed=seed, problems_max=1).problems != []


def test_code_in_a_file_would_be_noticed() -> None:
    """The guard itself: whoever makes code while a hostile file is read is caught."""

    def run(_: object) -> object:
        return compile("1", "hostile", "eval")

    with (
        mock.patch.object(decoders, "verify_log", run),
        pytest.raises(Unwanted, match="were to be run"),
    ):
        read_everything(decoders.specimen())
