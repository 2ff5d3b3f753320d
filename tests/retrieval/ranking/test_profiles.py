"""Profiles: what each says of its lanes, and which are refused."""

import json
import math
import re
from typing import Any

import pytest

from cerata.engine.errors import InvalidInput
from cerata.retrieval.ranking.profile import DEFAULT, LANES, PROFILES, Profile, profile_of


def test_a_profile_says_which_lanes_run_in_their_order() -> None:
    profile = Profile("mine", 3, {"vectors": 1, "text": 2, "facts": 0})
    assert [*profile.running.items()] == [("text", 2.0), ("vectors", 1.0)]
    assert profile.label == "mine 3"
    assert profile.to_dict() == {
        "name": "mine",
        "version": 3,
        "weights": {"text": 2.0, "vectors": 1.0},
        "signals": {},
        "importance": 0.0,
    }


def test_a_profile_comes_by_name_or_is_itself() -> None:
    mine = Profile("mine", 1, {"facts": 1})
    assert profile_of(mine) is mine
    assert profile_of(None) is profile_of("default") is DEFAULT
    assert [(name, one.name) for name, one in PROFILES.items()] == [
        ("default", "default"),
        ("words", "words"),
        ("continuity", "continuity"),
        ("used", "used"),
    ]
    assert PROFILES["used"].importance == 0.2
    assert DEFAULT.importance == 0
    assert PROFILES["words"].running == {"text": 1.0}
    assert set(DEFAULT.running) == set(LANES) - {"graph"}


REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (("", 1, {"text": 1}), "A profile needs a name"),
    (("a", 0, {"text": 1}), "version must be .* not 0"),
    (("a", True, {"text": 1}), "version must be .* not True"),
    (("a", 1, {"vector": 1}), "There is no lane 'vector' .* Did you mean 'vectors'"),
    (("a", 1, {"text": -1}), "The weight of lane 'text' must be .* not -1"),
    (("a", 1, {"text": float("nan")}), "not nan"),
    (("a", 1, {"text": True}), "not True"),
    (("a", 1, {"text": "much"}), "not 'much'"),
    (("a", 1, {"text": {"factual": 1}}), "not {'factual': 1}"),
    (("a", 1, {"text": 0}), "No lane runs"),
    (("a", 1, {}), "No lane runs"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_a_profile_that_means_nothing_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Profile(*arguments)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"no profile 'word'.*Did you mean 'words'"):
        profile_of("word")
    with pytest.raises(InvalidInput, match="Use one of default, words, continuity"):
        profile_of("zzz")


@pytest.mark.parametrize("weights", [{"text": 10**400}, {"text": 1e308}, None, ["text"]])
def test_weights_that_cannot_be_summed_are_bad_input(weights: Any) -> None:
    """Two of 1e308 were infinite together, and ranked by that."""
    with pytest.raises(InvalidInput):
        Profile("mine", 1, weights)


@pytest.mark.parametrize("name", [["default"], {}])
def test_what_is_no_name_of_a_profile_is_bad_input(name: Any) -> None:
    with pytest.raises(InvalidInput):
        profile_of(name)


def test_a_profile_is_found_by_its_label() -> None:
    """A recorded recall names it."""
    assert profile_of("default 1") is DEFAULT
    with pytest.raises(InvalidInput, match="default 9"):
        profile_of("default 9")


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_profile_is_read_from_its_values(name: str) -> None:
    """A file of a profile has the JSON of `to_dict`."""
    profile = PROFILES[name]
    copy = Profile.from_dict(json.loads(json.dumps(profile.to_dict())))
    assert copy.to_dict() == profile.to_dict()
    assert copy.label == profile.label


def test_a_profile_is_read_from_what_a_person_writes() -> None:
    values: dict[str, Any] = {"name": "mine", "version": 2, "weights": {"text": 1, "late": 0.5}}
    values["signals"] = {"period": 2.5}
    assert Profile.from_dict(values) == Profile(
        "mine", 2, {"text": 1, "late": 0.5}, signals={"period": 2.5}
    )


BAD_VALUES: list[tuple[Any, str]] = [
    ([], "must be an object"),
    ({}, "has no name"),
    ({"name": "a", "version": 1}, "has no weights"),
    ({"name": "a", "version": 1, "weights": {"text": 1}, "weigths": 1}, "'weigths'"),
    ({"name": "a", "version": 1, "weights": {"txt": 1}}, "no lane 'txt'"),
    ({"name": "a", "version": 1, "weights": 3}, "weights must map"),
    ({"name": "a", "version": 1, "weights": {"text": math.nan}}, "must be 0 to"),
    ({"name": "a", "version": 1, "weights": {"text": math.inf}}, "must be 0 to"),
    ({"name": "a", "version": 1, "weights": {"text": -1}}, "must be 0 to"),
    ({"name": "a", "version": 1, "weights": {"text": "1"}}, "must be 0 to"),
    ({"name": "a", "version": 1, "weights": {"text": None}}, "must be 0 to"),
    ({"name": "a", "version": 1, "weights": {"text": 1}, "signals": {"x": 1}}, "no signal 'x'"),
    (
        {"name": "a", "version": 1, "weights": {"text": 1}, "signals": {"when": math.nan}},
        "-1,000 to 1,000",
    ),
    ({"name": "a", "version": "1", "weights": {"text": 1}}, "version"),
    ({"name": 3, "version": 1, "weights": {"text": 1}}, "name"),
    ({"name": "a", "version": 1, "weights": {"text": 1}, "method": "rrf"}, "method"),
    ({"name": "a", "version": 1, "weights": {"text": 1}, "importance": 2}, "importance"),
]


@pytest.mark.parametrize(("values", "fault"), BAD_VALUES)
def test_values_that_are_no_profile_are_refused(values: Any, fault: str) -> None:
    """A file may be edited by hand."""
    with pytest.raises(InvalidInput, match=re.escape(fault)) as caught:
        Profile.from_dict(values)
    assert caught.value.remedy
