"""The canary: a planted bug that every run must notice before its result counts.

Owns the bug and its check, which runs before each crash test. Leaves out the other planted bugs
and their detectors (tests/crash).
"""

from typing import Final

from ..crash_states.states import Plan
from ..judging.campaign import Campaign
from ..stories.engine_workloads import append_long, fresh_image, record, recover
from .mutate import Edit, Plant

SMOKE_PLAN: Final = Plan(exhaustive=1_024, samples=24, tears=48, pair_drops=24)

CANARY: Final = Plant(
    "believe a record's body unchecked",
    "stories",
    (
        Edit(
            "cerata.engine.format.record:decode_record_body",
            "if check(key, TAG_RECORD_BODY, offset, body) != header.body_check:",
            "if False:",
        ),
    ),
)
"""A bug that no monitor notices: noticing it takes a crash state and the oracle."""


class Blind(AssertionError):
    """The harness did not notice a bug that was planted as a test of the harness."""


def canary() -> str:
    """Plant one bug, and return the finding by which the smallest crash test notices it.

    A run without findings is evidence only if the harness can find a bug.

    Raises:
        Blind: the bug was not noticed: the harness finds no bug at all.
    """
    fresh_image()
    with CANARY.planted():
        noticed = _first_failure()
    if noticed is None or _first_failure() is not None:
        raise Blind(
            "the canary lives: the harness does not notice that records are unchecked "
            f"({CANARY.name})"
        )
    return noticed


def _first_failure() -> str | None:
    story = record(("long",), alphabet={"long": append_long})
    failures = Campaign(recover, SMOKE_PLAN, failures_max=1).check(story).failures
    return str(failures[0].finding) if failures else None
