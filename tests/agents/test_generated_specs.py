"""Generated sets of specs find no shared value, and find one if instances are compared as text."""

from unittest import mock

import numpy as np
import pytest

from cerata.agents import slot as slots
from cerata.agents.slot import Instance, Slot
from cerata.engine.events import Scope
from cerata.memory.snapshot import layers
from cerata.memory.snapshot.layer import Layer
from cerata.memory.snapshot.layers import Layers
from cerata.memory.snapshot.snapshot import Snapshot
from cerata.memory.values.frames import Frame
from cerata.projections.columnar.scopes import ScopeNames

from .generated_specs import Counts, check_set, main


def test_no_two_instances_share_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["20"]) == 0
    assert "20 sets of specs" in capsys.readouterr().out


def _joined(scope: Scope) -> str:
    return ":".join(str(value) for _, value in scope)


def _is_alike(first: Scope, second: Scope) -> bool:
    return _joined(first) == _joined(second)


def _unchecked(_: Slot, frame: Frame) -> Frame:
    return frame


def test_instances_that_are_compared_as_text_are_found() -> None:
    counts = Counts()
    with (
        mock.patch.object(slots, "is_same", _is_alike),
        mock.patch.object(layers, "is_same", _is_alike),
        mock.patch.object(Instance, "uri_end", property(lambda instance: _joined(instance.scope))),
        mock.patch.object(ScopeNames, "admitted", return_value=None),
        mock.patch.object(Layer, "visible", property(lambda layer: np.ones(layer.rows, np.bool_))),
        mock.patch.object(Layers, "has", return_value=True),
        mock.patch.object(Snapshot, "sees", return_value=True),
        mock.patch.object(Slot, "_checked", _unchecked),
    ):
        for number in range(1, 121):
            check_set(number, counts)
            if counts.faults:
                break
    assert counts.faults
