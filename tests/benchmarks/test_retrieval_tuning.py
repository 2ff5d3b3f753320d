"""The tuning of a judged set: groups are corpora, and the report has the gain."""

import json

import pytest

from benchmarks.retrieval.command import main


def test_weights_of_a_set_are_learned(capsys: pytest.CaptureFixture[str]) -> None:
    """A corpus is a group, and is measured with the weights of the other."""
    assert main(["synthetic", "--tune", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["set"], report["groups"], report["folds"]) == ("synthetic", 2, 2)
    assert [gain["metric"] for gain in report["gains"]] == ["R@10", "nDCG@10"]
    assert report["questions"] == 60


def test_the_report_has_a_line_for_each_metric(capsys: pytest.CaptureFixture[str]) -> None:
    """A person reads the change and its interval."""
    assert main(["synthetic", "--tune", "--profile", "words"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("R@10     words 1 ")
    assert lines[2].startswith("nDCG@10  words 1 ")


def test_an_unknown_profile_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As without --tune."""
    assert main(["synthetic", "--tune", "--profile", "none"]) == 2
    assert "There is no profile 'none'" in capsys.readouterr().err
