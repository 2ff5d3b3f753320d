"""The identity of an embedder: it names a space, and the name says all of it."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.engine.events import is_token_space
from cerata.retrieval.embedders.identity import (
    EmbedderIdentity,
    Metric,
    VectorType,
    metric_of,
    parse_space,
)

PARTS = st.text(max_size=12) | st.text("ab1/@. ", max_size=6)
SPACES = st.text(max_size=40) | st.from_regex(
    r"[ab@/]{1,4}@[ab@/]{1,3}/[0-9]{1,6}/(cosine|dot|maxsim)(/i1)?"
)


def identity(**changed: Any) -> EmbedderIdentity:
    given: dict[str, Any] = {"name": "m", "revision": "1", "dimension": 3, **changed}
    return EmbedderIdentity(**given)


def test_a_space_is_named_after_what_made_it() -> None:
    """Each part of the identity is in the name, so that no two embedders share a space."""
    assert identity().space == "m@1/3/cosine"
    assert identity(metric="dot").space == "m@1/3/dot"
    assert identity(dtype="i1").space == "m@1/3/cosine/i1"
    assert identity(metric="maxsim", dtype="i1").space == "m@1/3/maxsim/i1"
    assert identity(name="a/b", metric="dot").space == "a/b@1/3/dot"


@given(
    name=PARTS,
    revision=PARTS,
    dimension=st.integers(-1, 70_000),
    metric=st.sampled_from(get_args(Metric)),
    dtype=st.sampled_from(get_args(VectorType)),
)
def test_a_space_reads_back_as_the_identity(
    name: str, revision: str, dimension: int, metric: Metric, dtype: VectorType
) -> None:
    """If two identities had one name, their vectors would mix."""
    try:
        made = EmbedderIdentity(name, revision, dimension, metric, dtype)
    except cerata.InvalidInput:
        assert not 0 < dimension <= 65_536 or any(
            not part.strip() or part != part.strip() or "@" in part or not part.isprintable()
            for part in (name, revision)
        ) or "/" in revision or (metric, dtype) == ("dot", "i1") or (
            metric == "maxsim" and (dtype != "i1" or dimension > 1_024)
        )  # fmt: skip
        return
    assert parse_space(made.space) == made
    assert is_token_space(made.space) == (metric == "maxsim")
    if metric != "maxsim":
        assert metric_of(made.space) == metric


@given(SPACES)
def test_a_name_is_an_identity_only_if_it_is_written_as_one(space: str) -> None:
    found = parse_space(space)
    assert found is None or found.space == space


@pytest.mark.parametrize(
    "space",
    [
        "",
        "mine",
        "mine/dot",
        "m@1/3/DOT",
        "m@1/3/dot/f4",
        "m@1/03/dot",
        "m@1/3/dot/",
        "m@1/3/dot\n",
        "m@1/0/dot",
        "m@1/65537/dot",
        "m@1/٣/dot",
        " m@1/3/dot",
        "m@a/1/3/dot",
        "m@a@1/3/dot",
        "m@1/3/dot/i1",
        "m@1/3/dot/i2",
        "x" * 300 + "@1/3/dot",
    ],
)
def test_any_other_name_is_compared_by_cosine(space: str) -> None:
    assert parse_space(space) is None
    assert metric_of(space) == "cosine"


@pytest.mark.parametrize(
    "changed",
    [
        {"name": ""},
        {"name": " m"},
        {"name": "a@b"},
        {"name": "a\nb"},
        {"name": "\ud800"},
        {"name": 3},
        {"name": "x" * 300},
        {"revision": ""},
        {"revision": "a/b"},
        {"revision": "a@b"},
        {"revision": None},
        {"dimension": 0},
        {"dimension": 65_537},
        {"dimension": True},
        {"dimension": 3.0},
        {"metric": "l2"},
        {"metric": None},
        {"dtype": "f8"},
        {"dtype": []},
        {"dtype": "i1", "metric": "dot"},
    ],
)
def test_what_cannot_name_a_space_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(cerata.InvalidInput, match=r"embedder's|over 255 bytes"):
        identity(**changed)
