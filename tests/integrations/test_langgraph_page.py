# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The page of LangGraph: its first program and its example run as shown."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langgraph.graph", reason="needs the extras langgraph and conformance")

from ..test_docs import ROOT, blocks, run_block

pytestmark = pytest.mark.langgraph

PAGE = ROOT / "docs" / "langgraph.md"


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing; the second run continues the thread of the first."""
    program = next(block for block in blocks(PAGE) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    first, second = (run_block(program, tmp_path).split() for _ in range(2))
    assert first[0] == "1"
    assert second[0] == "4"
    assert int(second[1]) > int(first[1])


def test_the_program_of_the_store_runs(tmp_path: Path) -> None:
    """An item is a frame, too."""
    program = [block for block in blocks(PAGE) if block.language == "python"][1]
    assert run_block(program, tmp_path) == run_block(program, tmp_path) == "['prefs']\ndark\n"


def test_a_killed_graph_goes_on(tmp_path: Path) -> None:
    """No finished node runs again, and the thread has all of them."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "examples" / "langgraph_agent.py"), *arguments]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )

    killed = run("--kill-after", "2")
    assert (killed.returncode, killed.stdout) == (-9, "runs search\nruns read\n")
    ended = run()
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("runs summarize\nruns report\nfinished: search, read, summarize")


def test_the_benchmark_runs() -> None:
    """The figures of the page of measurements have a command that works."""
    pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs the extra conformance")
    command = [sys.executable, "-m", "benchmarks.langgraph_bench", "--tiny"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert "first row after an append, ratio" in run.stdout
