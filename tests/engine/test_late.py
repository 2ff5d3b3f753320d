"""Modules that are imported at their first use."""

import errno
import subprocess
import sys
from math import pi

import pytest

from cerata.engine import late as late_module
from cerata.engine.errors import StorageFailed
from cerata.engine.late import late


def test_a_module_is_imported_when_a_name_of_it_is_used() -> None:
    """Most commands use few modules, and numpy alone takes longer than such a command."""
    code = """
import sys
from cerata.engine.late import late
colorsys = late("colorsys")
before = "colorsys" in sys.modules
colorsys.rgb_to_hsv
print(before, "colorsys" in sys.modules, colorsys.__dict__.keys() >= {"rgb_to_hsv"})
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == ["False", "True", "True"]


def test_a_name_that_the_module_lacks_is_an_attribute_error() -> None:
    """As for any module, so that `hasattr` and copies of objects work."""
    assert not hasattr(late("math"), "nothing")
    with pytest.raises(ModuleNotFoundError):
        _ = late("cerata.engine.nothing").name


def test_names_of_a_package_are_loaded_with_their_first_use() -> None:
    """A pack is read with each start, and its package must load nothing."""
    code = """
import sys
import cerata.packs.tuning as tuning
before = "cerata.packs.tuning.tuning" in sys.modules
print(before, callable(tuning.tune), hasattr(tuning, "nothing"), tuning.__all__)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout == "False True False ['tune']\n"


def test_a_refused_import_is_storage_failed_and_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process without a free descriptor gets the reason, and continues when it has one."""

    def refuse(name: str) -> object:
        raise OSError(errno.EMFILE, "Too many open files", name)

    math = late("math")
    with monkeypatch.context() as patch:
        patch.setattr(late_module, "import_module", refuse)
        with pytest.raises(StorageFailed, match="math"):
            _ = math.pi
    assert math.pi == pi
