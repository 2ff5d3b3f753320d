"""The page of MCP: its first program and its example run as shown."""

from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from ..test_docs import ROOT, blocks, run_block

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
