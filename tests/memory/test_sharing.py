"""A short run of the stress of a shared file; the long one is a command."""

import subprocess
import sys
from pathlib import Path

import cerata

from .sharing_stress import Totals, _check


def test_processes_of_every_kind_share_a_file(seed: int) -> None:
    """Threads, forks, clock steps, failing syncs, missing packages, later content, kills."""
    command = [sys.executable, "-m", "tests.memory.sharing_stress", "--seconds", "5"]
    run = subprocess.run(
        [*command, "--seed", str(seed)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 violations" in run.stdout


def test_the_check_notices_a_lost_and_a_doubled_event(tmp_path: Path) -> None:
    """Otherwise its silence would say nothing."""
    path = tmp_path / "shared.cera"
    with cerata.open(path) as store:
        first = store.put_frame("twice")
        store.put_frame("once")
        store.put_frame("twice", metadata={"copy": 2})
    (tmp_path / "shared.cera.follower-0").write_text("1")
    totals = Totals({first.ids[0]: "another text", 9: "lost"})
    _check(path, totals)
    assert totals.errors == [
        "acknowledged event 1 is not there",
        "acknowledged event 9 is not there",
        "'twice' is there 2 times",
    ]
