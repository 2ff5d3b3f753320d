"""Counts that must not fall unseen: a campaign that stops looking reports no violation either.

``CERATA_FLOORS=write python -m pytest tests/fault_injection/test_floors.py`` writes what there is
now: look at the difference, and say in the commit why less is tried.
"""

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from cerata.fault_injection.crash_states.epochs import epochs
from cerata.fault_injection.crash_states.states import Models, crash_states

from ..crash.operations import ALPHABET, record, record_creation
from ..crash.report import __main__ as report
from ..crash.report.budgets import SHARE
from ..crash.report.tasks import PARTS

FLOORS = Path(__file__).with_name("floors.json")
SMOKE = replace(SHARE, starts=("empty",))
SLACK = 0.9
"""A change of the engine writes a sector more or less; one of the harness halves a count."""

KEPT = (
    *("stories", "epochs", "states", "distinct_images", "recovered_images", "faults_met"),
    *("images_refused", "recoveries_crashed", "stores_questioned", "second_lives", "schedules"),
)

Counts = dict[str, dict[str, int]]


def parts() -> Counts:
    """Return what each part of the seeded smoke plan counts."""
    found = report.run(SMOKE).to_dict()
    told = cast("dict[str, dict[str, int]]", found["parts"])
    return {
        name: {what: counts[what] for what in KEPT if counts.get(what)}
        for name, counts in told.items()
    }


def models() -> Counts:
    """Return how many states of three small stories each way of losing data makes."""
    found: Counter[str] = Counter()
    first, second = record_creation(), record(("small", "long", "seal"))
    third = record(("batch", "backup"))
    for story in (first, second, third, *third.copies):
        names = {story.path: story.node} if story.existing else {}
        for epoch in epochs(story.trace, story.node, base=story.base, names=names):
            found.update(str(state.models) for state in crash_states(epoch, SHARE.plan))
    return {"states": dict(sorted(found.items()))}


def labels() -> Counts:
    """Return how many epochs each operation of the alphabet has writes in."""
    found: Counter[str] = Counter()
    for act in ALPHABET:
        story = record(("small", act, "small"))
        for epoch in epochs(story.trace, story.node, base=story.base, names={story.path: 1}):
            found.update({label.partition(":")[2] for label in epoch.labels} - {"small"})
    return {"epochs": dict(sorted(found.items()))}


COUNTS = {"parts": parts, "models": models, "labels": labels}


def fallen(found: Counts, floor: Counts) -> list[str]:
    """Return what is counted less often than it was, as sentences."""
    return [
        f"{group} {what}: {found.get(group, {}).get(what, 0):,} of {least:,}"
        for group, counts in floor.items()
        for what, least in counts.items()
        if found.get(group, {}).get(what, 0) < SLACK * least
    ]


@pytest.mark.parametrize(
    "kind",
    [pytest.param("parts", marks=pytest.mark.slow("runs every part")), "models", "labels"],
)
def test_nothing_is_tried_less_than_it_was(kind: str) -> None:
    """Part by part, model by model, operation by operation."""
    found = COUNTS[kind]()
    known: dict[str, Counts] = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}
    if os.environ.get("CERATA_FLOORS") == "write":
        known[kind] = found
        FLOORS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    assert fallen(found, known[kind]) == []


def test_the_floors_cover_all_that_there_is() -> None:
    """A part without a floor could fall to nothing."""
    known = json.loads(FLOORS.read_text())
    assert set(known["parts"]) == set(PARTS) - {"meeting"} | {"operations", "lives"}
    assert {"P0", "P1", "P1+P2", "P1+P3"} <= set(known["models"]["states"])
    assert any("P4" in name for name in known["models"]["states"])
    assert len(known["labels"]["epochs"]) >= 8
    assert known["parts"]["rot"]["faults_met"] > 0


def test_a_count_that_fell_is_told() -> None:
    """The comparison above, seen failing: one model left out of the plan."""
    floor = models()
    plan = replace(SHARE.plan, models=Models.ALL & ~Models.TORN)
    story = record(("small", "long", "seal"))
    found = Counter(
        str(state.models)
        for epoch in epochs(story.trace, story.node, base=story.base, names={story.path: 1})
        for state in crash_states(epoch, plan)
    )
    [said] = [one for one in fallen({"states": dict(found)}, floor) if "P1+P2" in one]
    assert said.startswith("states P1+P2: 0 of ")
    assert fallen(floor, floor) == []
