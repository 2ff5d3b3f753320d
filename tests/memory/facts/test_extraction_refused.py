"""What an extractor may not say or do, and what nobody may ask of one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import cerata
from cerata import Candidate, ExtractorFailed, Filter, InvalidInput, NotFound, ReadOnly, Store

from .extractors import TEXT, Model, first_word

WRONG: dict[str, tuple[Any, str]] = {
    "no candidate": (("anna", "lives in", "paris"), "returned a tuple, not a Candidate"),
    "beyond": (Candidate("a", "is", "b", 0, 100), r"bytes \[0, 100\), which are not in the text"),
    "before": (Candidate("a", "is", "b", -1, 1), r"bytes \[-1, 1\)"),
    "empty": (Candidate("a", "is", "b", 1, 1), r"bytes \[1, 1\)"),
    "cut": (Candidate("a", "is", "b", 0, 1), r"bytes \[0, 1\)"),
    "float": (Candidate("a", "is", "b", 0, 2.0), r"bytes \[0, 2.0\)"),  # type: ignore[arg-type]
    "bool": (Candidate("a", "is", "b", False, 2), r"bytes \[False, 2\)"),
    "long object": (Candidate("a", "is", "b" * (16 << 20) + "b", 0, 2), "over the limit of"),
    "long name": (Candidate("a" * (16 << 20) + "a", "is", "b", 0, 2), "over the limit of"),
    "subject": (Candidate("", "is", "b", 0, 2), "The subject is empty"),
    "nan": (Candidate("a", "is", float("nan"), 0, 2), "finite number, not nan"),
    "confidence": (
        Candidate("a", "is", "b", 0, 2, confidence=2),
        "confidence must be from 0 to 1, not 2",
    ),
    "period": (
        Candidate("a", "is", "b", 0, 2, valid_from="2020-01-01", valid_to="2019-01-01"),
        "would end at 2019",
    ),
}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_fact_is_refused_with_all_of_its_frame(
    store: Store, name: str, dry_run: bool
) -> None:
    wrong, said = WRONG[name]
    store.put_frame("é and more")
    right = Candidate("a", "is", "b", 0, 2)
    with pytest.raises(ExtractorFailed, match=said) as caught:
        store.graph.extract(extractor=Model(lambda _: [right, wrong]), dry_run=dry_run)
    assert (caught.value.extractor, caught.value.frame) == ("model", 1)
    assert caught.value.where == "frame 1, candidate 2"
    assert store.head.seq == 1
    assert store.graph.extract(extractor=Model(first_word)).frames[0].added


@pytest.mark.parametrize("error", [ValueError("no"), cerata.Conflict("no")])
def test_an_extractor_that_raises_is_told_from_the_memory(
    store: Store, error: BaseException
) -> None:
    def half(_: str) -> Iterator[Candidate]:
        yield Candidate("a", "is", "b", 0, 1)
        raise error

    store.put_frame(TEXT)
    with pytest.raises(ExtractorFailed, match=rf"'model' raised {type(error).__name__}") as caught:
        store.graph.extract(extractor=Model(half))
    assert caught.value.__cause__ is error
    assert store.head.seq == 1


def test_an_extractor_that_never_ends_is_stopped(store: Store) -> None:
    def endless(_: str) -> Iterator[Candidate]:
        while True:
            yield Candidate("a", "is", "b", 0, 1)

    store.put_frame(TEXT)
    with pytest.raises(ExtractorFailed, match="returned more than 9,999 facts"):
        store.graph.extract(extractor=Model(endless))


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("model", " "), ("model", 1), ("m" * 256, "1"), ("\ud800", "1")],
)
def test_an_extractor_has_a_name_and_a_version(store: Store, name: Any, version: Any) -> None:
    store.put_frame(TEXT)
    with pytest.raises(InvalidInput, match="The extractor's"):
        store.graph.extract(extractor=Model(first_word, name, version))


@pytest.mark.parametrize("given", [object(), 7, "english-facts"])
def test_what_is_no_extractor_is_refused(store: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="name must be a non-empty string, not None"):
        store.graph.extract(extractor=given)


def test_an_extractor_that_gives_nothing_to_go_through_is_at_fault(store: Store) -> None:
    store.put_frame("nothing of note")
    with pytest.raises(ExtractorFailed, match="raised TypeError"):
        store.graph.extract(extractor=Model(lambda _: cast("Any", None)))


def test_name_and_version_do_not_run_together(store: Store) -> None:
    """Whoever is called "a b", version c, is not "a", version b c."""
    store.put_frame(TEXT)
    for name, version in (("a b", "c"), ("a", "b c"), ("a b c", "1")):
        assert store.graph.extract(extractor=Model(first_word, name, version)).frames[0].added


def test_calls_that_cannot_be_are_refused(store: Store, tmp_path: Path) -> None:
    store.put_frame(TEXT)
    with pytest.raises(NotFound):
        store.graph.extract(7)
    with pytest.raises(InvalidInput, match="not both"):
        store.graph.extract(1, where=Filter(kind="text"))
    with store.transaction(), pytest.raises(InvalidInput, match="cannot run in a transaction"):
        store.graph.extract()
    path = tmp_path / "memory.cera"
    with cerata.open(path) as other:
        other.put_frame(TEXT)
    with cerata.open(path, mode="r") as reader:
        assert reader.graph.extract(dry_run=True).found == 2
        with pytest.raises(ReadOnly):
            reader.graph.extract()
