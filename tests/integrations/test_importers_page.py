"""The page of importers: its first program runs as shown."""

from pathlib import Path

from ..test_docs import ROOT, blocks, run_block

PAGE = ROOT / "docs" / "importers.md"


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing; the second run adds nothing."""
    program = next(block for block in blocks(PAGE) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    assert run_block(program, tmp_path) == "1 0 The index is HNSW.\n"
    assert run_block(program, tmp_path) == "0 1 The index is HNSW.\n"
