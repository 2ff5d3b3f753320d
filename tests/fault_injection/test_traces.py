"""The same seed is the same run (O16): in any process, in any order, under any hash seed."""

import subprocess
import sys
from pathlib import Path

import pytest

from cerata.fault_injection.simulation.simulated_world import World

from ..crash import determinism as traces

SEEDS = range(3)


def test_a_seed_is_the_same_run_everywhere(checkout: Path) -> None:
    """Four processes, two hash seeds; the command runs 200 seeds so."""
    command = [
        sys.executable,
        "-m",
        "tests.crash.determinism",
        "--seeds",
        str(len(SEEDS)),
    ]
    run = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 seeds in 4 processes under 2 hash seeds: 0 differ" in run.stdout
    assert len({traces.digest_of(seed) for seed in SEEDS}) == len(SEEDS)


def test_the_order_of_hashes_would_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same with a workload whose texts depend on how strings are hashed."""
    (tmp_path / "sitecustomize.py").write_text(
        "from cerata.fault_injection.stories import engine_workloads as workloads\n"
        "text = workloads.text_of\n"
        "workloads.text_of = lambda size, seed: str(hash('x')) + text(size, seed)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(traces.__file__).parents[2]}")
    assert traces.main(["--seeds", "3"]) == 1
    assert "differs" in capsys.readouterr().out


def test_chance_that_is_not_the_seeds_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw of the machine's is enough."""
    before = traces.digest_of(0)
    assert traces.digest_of(0) == before
    real = World.environment
    draws = iter(range(1 << 20))

    def environment(self: World, *arguments: object, **options: object) -> object:
        self.seed += next(draws)
        return real(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(World, "environment", environment)
    assert traces.digest_of(0) != before
