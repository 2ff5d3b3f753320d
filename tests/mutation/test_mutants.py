"""The mutation test is tested: it changes what it says, and somebody notices."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from .about import ABOUT, paths_about
from .mutants import CORE, live_function, mutants_of
from .survivors import explained


def names(module: str) -> list[str]:
    return [mutant.name for mutant in mutants_of(module)]


@pytest.mark.parametrize("module", CORE)
def test_every_mutant_has_a_name_of_its_own_and_reaches_its_function(module: str) -> None:
    """Names outlive line numbers: the list of survivors goes by them."""
    mutants = mutants_of(module)
    assert mutants
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for path in {mutant.function for mutant in mutants}:
        assert live_function(module, path).__code__.co_name == path.rpartition(".")[2]


def test_no_message_is_changed_and_no_docstring() -> None:
    """An error that is not raised is a mutant, one that says something else is none."""
    assert any("raise " in name and name.endswith("-> pass") for name in names("handle_lock"))
    assert not any("remedy" in name.partition("raise")[0] for name in names("handle_lock"))
    assert not any(
        isinstance(ast.literal_eval(name.rpartition("-> ")[2]), str)
        for name in names("ring")
        if name.rpartition("-> ")[2].startswith("'")
    )


def test_survivors_are_mutants_that_there_are() -> None:
    """A line that changed must be thought about again."""
    there = {name for module in CORE for name in names(module)}
    assert sorted(set(explained()) - there) == []
    assert all(explained().values())


def test_every_module_has_tests_that_are_about_it(checkout: Path) -> None:
    """In files that there are; they are what a command without any asks."""
    assert tuple(ABOUT) == CORE
    missing = [path for path in paths_about(CORE) if not (checkout / path).exists()]
    assert missing == []


def test_the_ring_is_held_against_its_mutants(checkout: Path) -> None:
    """With its own tests all but the explained ones are noticed; with none of them, none is."""
    done = held(checkout, "tests/engine/test_ring.py")
    assert "0 without a reason" in done.stdout, done.stdout
    assert done.returncode == 0
    blind = held(checkout, "tests/engine/test_integrity.py")
    assert "0 noticed" in blind.stdout, blind.stdout
    assert blind.returncode == 1


def held(checkout: Path, tests: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.mutation", "ring", "--share", "1/3", "--tests", tests]
    return subprocess.run(command, check=False, cwd=checkout, capture_output=True, text=True)
