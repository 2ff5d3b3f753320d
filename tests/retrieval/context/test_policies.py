"""Context policies: what each says of an entry, and which are refused."""

import dataclasses
from typing import Any

import pytest

import cerata
from cerata.engine.errors import InvalidInput
from cerata.retrieval.base_level_activation import Use
from cerata.retrieval.context.policies import POLICIES, WHOLE, ContextPolicy, policy_of, specificity

TIERED = POLICIES["tiered"]


def test_what_comes_with_it_says_what_its_version_says() -> None:
    """A context that was shown is made again by name and version: these numbers never change."""
    whole = {
        "name": "whole",
        "version": 3,
        "tier_days": None,
        "specific_factor": 4.0,
        "shorten": False,
        "gist_tokens": 100,
        "line_tokens": 40,
        "duplicate_share": 0.9,
        "fill": False,
        "whole_rows": True,
        "by_session": True,
    }
    tiered = whole | {"name": "tiered", "tier_days": [7.0, 30.0], "shorten": True, "fill": True}
    assert [policy.to_dict() for policy in POLICIES.values()] == [whole, tiered]
    second = {"version": 2, "by_session": False}
    assert policy_of("whole 2").to_dict() == whole | second
    assert policy_of("tiered 2").to_dict() == tiered | second
    older = second | {"version": 1, "fill": False, "whole_rows": False}
    assert policy_of("whole 1").to_dict() == whole | older
    assert policy_of("tiered 1").to_dict() == tiered | older
    assert policy_of("tiered 3") is TIERED
    assert policy_of(None) is WHOLE
    assert policy_of("tiered") is TIERED
    assert policy_of(mine := ContextPolicy("mine", 2)) is mine
    assert mine.label == "mine 2"


@pytest.mark.parametrize(
    ("days", "exactly", "tier"),
    [
        (0, 0, "full"),
        (7, 0, "full"),
        (7.1, 0, "gist"),
        (30, 0, "gist"),
        (30.1, 0, "line"),
        (28, 1, "full"),
        (28.1, 1, "gist"),
        (75, 0.5, "gist"),
        (120.1, 1, "line"),
    ],
)
def test_a_tier_follows_from_age_and_question(days: float, exactly: float, tier: str) -> None:
    """A question for one thing keeps the details of it four times as long."""
    assert TIERED.tier(Use(days).effective_age, exactly) == tier
    assert WHOLE.tier(days, exactly) == "full"


def test_what_was_used_is_told_as_what_is_younger() -> None:
    old = Use(100.0)
    assert TIERED.tier(old.effective_age, 0) == "line"
    assert TIERED.tier(Use(100.0, count=1, since=50.0).effective_age, 0) == "gist"
    assert TIERED.tier(Use(100.0, count=1, since=2.0).effective_age, 0) == "full"


def test_strength_is_the_sum_over_creation_and_uses() -> None:
    """By the paper's sum, for uses of which it is known when each was."""
    assert Use(16.0, count=1, since=4.0).of_uses == 1 / 2
    assert Use(16.0, count=1, since=4.0).effective_age == pytest.approx((1 / 4 + 1 / 2) ** -2)
    days = [4.0 + 12.0 * step / 1_000 for step in range(1_000)]
    spread = sum(one**-0.5 for one in days) / len(days)
    assert Use(16.0, count=3, since=4.0).of_uses == pytest.approx(1 / 2 + 2 * spread, rel=1e-3)
    assert Use(0.1, count=1, since=0.2).of_uses == 1.0
    assert Use(2.0, count=2, since=9.0).of_uses == 1 / 3 + 2 / 6


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("which index did we choose?", 1.0),
        ('tell me of the "harbour bridge"', 1.0),
        (cerata.query("tag:x"), 1.0),
        ("tell me about the harbour", 0.25),
        ("tell me about the of the", 0.125),
        ("", 0.0),
        ("why " + " ".join(f"word{number}" for number in range(20)), 1.0),
    ],
)
def test_a_question_is_as_specific_as_what_it_names(question: Any, expected: float) -> None:
    assert specificity(question) == expected


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"name": " "}, "needs a name"),
        ({"version": 0}, "version must be .* not 0"),
        ({"version": True}, "version must be .* not True"),
        ({"tier_days": (3, 2)}, "tier_days must be two ascending"),
        ({"tier_days": (1,)}, "tier_days must be two ascending"),
        ({"tier_days": 7}, "tier_days must be .* not 7"),
        ({"tier_days": (float("nan"), 2)}, "tier_days must be two ascending"),
        ({"specific_factor": 0.5}, "specific_factor must be .* not 0.5"),
        ({"shorten": 1}, "shorten must be .* not 1"),
        ({"gist_tokens": 0}, "gist_tokens must be .* not 0"),
        ({"line_tokens": 1.5}, "line_tokens must be .* not 1.5"),
        ({"duplicate_share": 0}, "duplicate_share must be .* not 0"),
        ({"duplicate_share": 1.1}, "duplicate_share must be .* not 1.1"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        dataclasses.replace(ContextPolicy("mine", 1), **given)


def test_a_policy_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"no context policy 'tierd'.*Did you mean 'tiered'"):
        policy_of("tierd")
    with pytest.raises(InvalidInput, match="no context policy 3"):
        policy_of(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [{"specific_factor": 10**400}, {"tier_days": (1, 10**400)}, {"duplicate_share": 10**400}],
)
def test_a_number_that_no_float_holds_is_bad_input(given: Any) -> None:
    with pytest.raises(InvalidInput):
        ContextPolicy("mine", 1, **given)
