"""Profiles: what each says of its lanes, and which are refused."""

import json
import math
import re
from typing import Any

import pytest

from cerata.engine.errors import InvalidInput
from cerata.retrieval.query_classifier import KINDS
from cerata.retrieval.ranking.profile import LANES, Profile
from cerata.retrieval.ranking.profiles import AUTO, BALANCED, PROFILES, profile_of

OF_EACH: dict[str, float] = dict.fromkeys(KINDS, 1.0)


def test_a_profile_says_which_lanes_run_for_a_question_in_their_order() -> None:
    profile = Profile("mine", 3, {"vectors": {**OF_EACH, "factual": 0}, "text": 2, "facts": 0})
    assert list(profile.weights_for("semantic").items()) == [("text", 2.0), ("vectors", 1.0)]
    assert profile.weights_for("factual") == {"text": 2.0}
    assert profile.label == "mine 3"
    both = {"text": 2.0, "vectors": 1.0}
    assert profile.to_dict() == {
        "name": "mine",
        "version": 3,
        "method": "rrf",
        "rerank": False,
        "importance": 0.0,
        "fact_words": True,
        "in_context": True,
        "token_weights": True,
        "token_window": True,
        "names_out": True,
        "vector_window": False,
        "feedback": 0,
        "gate": False,
        "signals": {},
        "weights": {
            "factual": {"text": 2.0},
            "semantic": both,
            "temporal": both,
            "exploratory": both,
        },
        "turn_weights": {},
    }


def test_turns_have_weights_of_their_own() -> None:
    """They weigh the lanes that run, each kind of question by its own weight."""
    weights = {"text": 1, "vectors": 2, "late": 1}
    profile = Profile(
        "mine", 1, weights, turn_weights={"text": 2, "vectors": {**OF_EACH, "factual": 0}}
    )
    assert profile.turn_weights_for("semantic") == {"text": 2.0, "vectors": 1.0, "late": 0.0}
    assert profile.turn_weights_for("factual") == {"text": 2.0, "vectors": 0.0, "late": 0.0}
    assert profile.weights_for("factual") == weights
    assert profile.is_by_kind
    plain = Profile("mine", 1, weights)
    assert plain.turn_weights_for("semantic") == weights
    assert not plain.is_by_kind
    copy = Profile.from_dict(json.loads(json.dumps(profile.to_dict())))
    assert copy.turn_weights_for("factual") == profile.turn_weights_for("factual")


def test_a_profile_comes_by_name_or_is_itself() -> None:
    mine = Profile("mine", 1, {"facts": 1})
    assert profile_of(mine) is mine
    assert profile_of(None) is profile_of("auto") is AUTO
    assert profile_of("balanced") is BALANCED
    assert [(name, one.name) for name, one in PROFILES.items()] == [
        ("balanced", "balanced"),
        ("words", "words"),
        ("chat", "chat"),
        ("notes", "notes"),
        ("documents", "documents"),
        ("auto", "auto"),
        ("continuity", "continuity"),
        ("used", "used"),
    ]
    assert PROFILES["used"].importance == 0.2
    assert BALANCED.importance == 0
    assert PROFILES["words"].weights_for("semantic") == {"text": 1.0}
    assert set(BALANCED.weights_for("factual")) == set(LANES) - {"graph"}


REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (("", 1, {"text": 1}), "A profile needs a name"),
    (("a", 0, {"text": 1}), "version must be .* not 0"),
    (("a", True, {"text": 1}), "version must be .* not True"),
    (("a", 1, {"text": 1}, "rff"), "There is no method 'rff' .* Did you mean 'rrf'"),
    (("a", 1, {"vector": 1}), "There is no lane 'vector' .* Did you mean 'vectors'"),
    (("a", 1, {"text": -1}), "The weight of lane 'text' must be .* not -1"),
    (("a", 1, {"text": float("nan")}), "not nan"),
    (("a", 1, {"text": True}), "not True"),
    (("a", 1, {"text": "much"}), "not 'much'"),
    (("a", 1, {"text": {**OF_EACH, "factul": 1}}), "no kind of question 'factul'.*'factual'"),
    (("a", 1, {"text": {"factual": 1}}), "no weight for semantic questions"),
    (("a", 1, {"text": {**OF_EACH, "temporal": float("inf")}}), "not inf"),
    (("a", 1, {"text": {**OF_EACH, "temporal": 0}}), "No lane runs for temporal questions"),
    (("a", 1, {}), "No lane runs for factual questions"),
]
REFUSED_FOR_TURNS: list[tuple[Any, str]] = [
    ({"vectors": 1}, "There is no lane 'vectors'.*Use one of text"),
    ({"text": -1}, "The weight of lane 'text' must be .* not -1"),
    ({"text": float("inf")}, "not inf"),
    ({"text": 0}, "No lane runs for factual questions"),
    (["text"], "turn_weights must map lanes to weights"),
    (None, "turn_weights must map lanes to weights"),
]
NO_FEEDBACK: list[Any] = [-1, 101, True, 1.0, "3", None]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_a_profile_that_means_nothing_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Profile(*arguments)


@pytest.mark.parametrize(("weights", "said"), REFUSED_FOR_TURNS)
def test_wrong_weights_for_turns_are_refused(weights: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Profile("a", 1, {"text": 1}, turn_weights=weights)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"no profile 'word'.*Did you mean 'words'"):
        profile_of("word")
    with pytest.raises(InvalidInput, match="Use one of balanced, words, chat"):
        profile_of("zzz")


@pytest.mark.parametrize("weights", [{"text": 10**400}, {"text": 1e308}, None, ["text"]])
def test_weights_that_cannot_be_summed_are_bad_input(weights: Any) -> None:
    """Two of 1e308 were infinite together, and ranked by that."""
    with pytest.raises(InvalidInput):
        Profile("mine", 1, weights)


@pytest.mark.parametrize("name", [["balanced"], {}])
def test_what_is_no_name_of_a_profile_is_bad_input(name: Any) -> None:
    with pytest.raises(InvalidInput):
        profile_of(name)


def test_an_earlier_version_of_a_profile_is_found_by_its_label() -> None:
    """A recorded recall names it."""
    assert profile_of("balanced 5") is BALANCED
    alone = profile_of("balanced 3")
    assert (alone.label, alone.fact_words, alone.in_context) == ("balanced 3", True, False)
    earlier = profile_of("balanced 2")
    assert (earlier.label, earlier.fact_words, earlier.in_context) == ("balanced 2", False, False)
    with pytest.raises(InvalidInput, match="balanced 9"):
        profile_of("balanced 9")


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_profile_is_read_from_its_values(name: str) -> None:
    """A file of a profile has the JSON of `to_dict`."""
    profile = PROFILES[name]
    copy = Profile.from_dict(json.loads(json.dumps(profile.to_dict())))
    assert copy.to_dict() == profile.to_dict()
    assert copy.label == profile.label


def test_a_profile_is_read_from_one_weight_for_each_lane() -> None:
    """A person writes no weights by kind of question."""
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
    ({"name": "a", "version": 1, "weights": {"text": 1}, "rerank": 1}, "rerank"),
    ({"name": "a", "version": 1, "weights": {"text": 1}, "method": []}, "method"),
]


@pytest.mark.parametrize(("values", "fault"), BAD_VALUES)
def test_values_that_are_no_profile_are_refused(values: Any, fault: str) -> None:
    """A file may be edited by hand."""
    with pytest.raises(InvalidInput, match=re.escape(fault)) as caught:
        Profile.from_dict(values)
    assert caught.value.remedy


@pytest.mark.parametrize("feedback", NO_FEEDBACK)
def test_feedback_of_no_whole_number_is_refused(feedback: Any) -> None:
    with pytest.raises(InvalidInput, match="feedback must be a whole number from 0 to 100, not"):
        Profile("mine", 1, {"text": 1}, feedback=feedback)


def test_only_documents_have_feedback() -> None:
    """Measured: documents gain 1.3 of nDCG@10; conversations lose."""
    feedback = {profile.name: profile.feedback for profile in PROFILES.values()}
    assert feedback == {**dict.fromkeys(PROFILES, 0), "documents": 3}
