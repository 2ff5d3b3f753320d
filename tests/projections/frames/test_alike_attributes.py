"""Frames that are alike get the same attributes by column as one by one, codes included."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from cerata.engine.events import PutFrame
from cerata.projections.frames import alike_attributes
from cerata.projections.frames.attributes import Attributes

STEP = 40


def frames(source: Random, kind: str) -> list[PutFrame]:
    """Return frames of one shape; some steps have a new name, string or an odd value."""
    words = [f"word{source.randrange(12)}" for _ in range(STEP)]
    values: dict[str, Sequence[Any]] = {
        "numbers": [source.choice([0, -3, 7, 2**53, -(2**53)]) for _ in range(STEP)],
        "large": [source.choice([1, 2**53 + 1, 2**64, -(2**70)]) for _ in range(STEP)],
        "mixed": [source.choice([1, 1.5, True, None, "x", [1], {"a": 1}]) for _ in range(STEP)],
        "floats": [source.choice([0.5, -0.0, 1e300]) for _ in range(STEP)],
        "bools": [source.choice([True, False]) for _ in range(STEP)],
        "texts": words,
        "nulls": [None] * STEP,
    }
    metadata: list[dict[str, Any]] = [
        {"n": number, "value": value} for number, value in enumerate(values[kind])
    ]
    tags = [
        tuple(f"tag{source.randrange(9)}" for _ in range(source.randrange(3))) for _ in range(STEP)
    ]
    if source.random() < 0.2:
        metadata[3] = {"value": 1, "n": 2}
    fields: list[dict[str, Any]] = [{} for _ in range(STEP)]
    if source.random() < 0.2:
        fields[5] = source.choice(
            [
                {"uri": "u"},
                {"title": "t"},
                {"track": "k"},
                {"labels": ("l",)},
                {"content_dates": (1, 2)},
                {"expires": 9},
            ]
        )
    return [
        PutFrame(metadata=each, tags=tag, **more)
        for each, tag, more in zip(metadata, tags, fields, strict=True)
    ]


def columns_of(steps: Sequence[Sequence[PutFrame]]) -> list[Any]:
    attributes = Attributes()
    first = 0
    for bodies in steps:
        attributes.add(first, range(first + 1, first + 1 + len(bodies)), bodies)
        attributes.settle()
        first += len(bodies)
    effects = attributes.effects((0, first), 0, first)
    return [*effects, *[column.tolist() for column in effects.values()]]


KINDS = ("numbers", "large", "mixed", "floats", "bools", "texts", "nulls")


@pytest.mark.parametrize("seed", range(12))
def test_alike_frames_have_the_attributes_of_single_frames(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    source = Random(seed)
    steps = [frames(source, source.choice(KINDS)) for _ in range(12)]
    by_column = columns_of(steps)
    monkeypatch.setattr(alike_attributes, "ALIKE_MIN", 1 << 30)
    assert columns_of(steps) == by_column


def test_frames_with_tags_and_numbers_are_alike() -> None:
    """The test above compares nothing if no step is alike; one field may have new strings."""
    attributes = Attributes()
    bodies = [PutFrame(tags=(f"t{n}",), metadata={"n": n}) for n in range(STEP)]
    attributes.add(0, range(1, STEP + 1), bodies)
    attributes.settle()
    later = [PutFrame(tags=(f"t{n}",), metadata={"n": n}) for n in range(20, 20 + STEP)]
    attributes.add(STEP, range(STEP + 1, 2 * STEP + 1), later)
    assert attributes._alike is not None
    attributes.settle()
    assert np.array_equal(attributes.row.view(), np.repeat(np.arange(2 * STEP), 2))
