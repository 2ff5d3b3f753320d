"""The page of MCP: its first program and its example run as shown."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

import cerata

from ..test_docs import ROOT, blocks, run_block
from .mcp_messages import server_environment

pytestmark = pytest.mark.mcp

PAGE = ROOT / "docs" / "mcp.md"


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing; the second run stores nothing new."""
    program = next(block for block in blocks(PAGE) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    first, second = (run_block(program, tmp_path) for _ in range(2))
    assert first == second
    assert "The index is HNSW." in first
    assert first.endswith("basis 1\n")


def test_a_killed_agent_goes_on(tmp_path: Path) -> None:
    """No finished step runs again, and the memory has the note of each step once."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "examples" / "mcp_agent.py"), *arguments]
        return subprocess.run(
            command,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=server_environment(),
        )

    killed = run("--kill-after", "2")
    assert (killed.returncode, killed.stdout) == (-9, "runs search\nruns read\n")
    ended = run()
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("runs summarize\nruns report\n")
    assert " of 4 shown" in run().stdout
    with cerata.open(tmp_path / "survey.cera") as store:
        assert store.count() == (4, 0)
        assert [fact.object for fact in store.facts("survey", "finished")] == [
            "search",
            "read",
            "summarize",
            "report",
        ]
        assert store.verify().ok
