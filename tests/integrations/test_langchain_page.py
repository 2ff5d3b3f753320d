# Where the extra langchain is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The page of LangChain: its first program runs as shown."""

from pathlib import Path

import pytest

pytest.importorskip("langchain_core.vectorstores", reason="needs the extra langchain")

from ..test_docs import ROOT, blocks, run_block

pytestmark = pytest.mark.langchain


def test_the_first_program_of_the_page_runs(tmp_path: Path) -> None:
    """Ten lines, from nothing; the second run replaces the document of the first."""
    page = ROOT / "docs" / "langchain.md"
    program = next(block for block in blocks(page) if block.language == "python")
    assert len([line for line in program.text.splitlines() if line.strip()]) <= 10
    for basis in (1, 3):
        assert run_block(program, tmp_path) == f"The index we use is HNSW.\n{basis}\n"
