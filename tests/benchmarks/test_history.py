"""The page of measurements is short, and the history of its figures can be printed."""

import re
from pathlib import Path

import pytest

from benchmarks import history
from benchmarks.history import Result, Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements.md"
LINES_MAX = 250


def test_the_page_of_measurements_is_short() -> None:
    """The page of 1,900 lines hid the current figure of a subject among earlier ones."""
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= LINES_MAX


def test_each_row_of_the_page_has_its_history() -> None:
    """A figure that leaves the page is not lost."""
    anchors = set(re.findall(r'<a id="([\w-]+)">', PAGE.read_text(encoding="utf-8")))
    names = {result.name for results in history.load() for result in results.results}
    assert len(anchors) > 60
    assert anchors <= names


def test_the_command_prints_the_series_of_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert history.main(["vectors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2026-11-28 de3ec2ca: Vectors"
    assert "  hybrid search, best 10, median | 1.1 ms | 11.5 ms | 3.4 ms | 97 ms" in lines


def test_a_name_that_no_figure_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert history.main(["no-such-figure"]) == 1
    assert capsys.readouterr().out == "No figure is named no-such-figure.\n"


def test_results_of_a_day_are_added_to_one_file(tmp_path: Path) -> None:
    """The second benchmark of a commit must not replace the first."""
    result = Result("speed", "Speed", tables=[Table(["a", "b"], [["1", "2"]])])
    path = history.save(result, tmp_path)
    assert history.save(Result("size", "Size", notes=["3 bytes"]), tmp_path) == path
    [results] = history.load(tmp_path)
    assert [saved.name for saved in results.results] == ["speed", "size"]
    assert list(history.series("size", [results]))[1:] == ["  3 bytes"]


def test_a_benchmark_is_run_and_its_lines_returned() -> None:
    result = history.run("size_bench", ["--help"])
    assert result.commands == ["python -m benchmarks.size_bench --help"]
    assert any("--documents" in note for note in result.notes)
