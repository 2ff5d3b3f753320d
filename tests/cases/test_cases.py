"""Faults that users of similar programs reported, tried on Cerata: each case is a small program.

Two cases of the reports need large public data and are measured by benchmarks: excerpts in Thai,
and a folder of a person's files with a model.
"""

from pathlib import Path
from typing import Any

import pytest

from . import documents, promises, words
from .checks import Case, Checks

CASES: dict[str, Case] = {
    name.removeprefix("case_"): case
    for module in (documents, promises, words)
    for name, case in vars(module).items()
    if name.startswith("case_")
}

LATER = {
    "14_time_of_turns": "turns without a known time get the time of the import",
    "16_base64_in_the_index": "notebooks and pictures inside of links are read as text",
    "17_front_matter": "front matter of notes is read as text",
    "18_files_left_out": "folders are read by a list of known suffixes",
    "19_encodings": "plain text in UTF-16 or a stated encoding is refused",
    "23_an_export_again_under_another_name": "the identity of a turn is the path of its file",
    "25_pdf_hyphen": "the text of a PDF keeps hyphens at line ends",
}
"""Cases that fail, with the reason."""

EXTRAS = {
    "10_mcp_optional_arguments": pytest.mark.mcp,
    "31_item_of_an_integration": pytest.mark.langgraph,
    "32_checkpoint_unreadable": pytest.mark.langgraph,
}
UNWATCHED = pytest.mark.unwatched("damages files")


def marks_of(name: str) -> list[Any]:
    marks: list[Any] = [EXTRAS[name]] if name in EXTRAS else []
    if name in LATER:
        marks.append(pytest.mark.xfail(strict=True, raises=AssertionError, reason=LATER[name]))
    return [*marks, UNWATCHED] if name == "38_ring_and_witnesses" else marks


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=marks_of(name)) for name in sorted(CASES)]
)
def test_a_reported_fault_does_not_occur(name: str, tmp_path: Path) -> None:
    checks = Checks(tmp_path)
    CASES[name](checks)
    assert checks.failures == []
