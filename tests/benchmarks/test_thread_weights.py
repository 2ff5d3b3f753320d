"""The weight of the signal ``thread`` gains more in its conversation than it costs elsewhere."""

from pathlib import Path

import pytest

from benchmarks.retrieval.synthetic import synthetic_set
from benchmarks.retrieval.thread_weights import main, thread_weights
from cerata.retrieval.ranking.profile import OPTIONAL_SIGNALS

ROOT = Path(__file__).resolve().parents[2]


def test_the_recommended_weight_gains_more_than_it_costs() -> None:
    """On a synthetic set; a weight of two steps costs more than it gains."""
    _, [off, recommended, heavy] = thread_weights(
        synthetic_set(), (0.0, OPTIONAL_SIGNALS["thread"], 2.0)
    )

    def balances(weight: int) -> list[float]:
        asked = (off, recommended, heavy)[weight]
        gains = [after - before for before, after in zip(off.own, asked.own, strict=True)]
        costs = [before - after for before, after in zip(off.next, asked.next, strict=True)]
        return [gain - cost for gain, cost in zip(gains, costs, strict=True)]

    assert sum(balances(1)) > 0.01
    assert all(balance < 0 for balance in balances(2))
    assert all(
        after - before > 0.01 for before, after in zip(off.own, recommended.own, strict=True)
    )


def test_the_command_prints_a_row_for_each_weight(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synthetic"]) == 0
    head, columns, *rows = capsys.readouterr().out.splitlines()
    assert "50 questions, profile of the store" in head
    assert columns.split()[:3] == ["thread", "own", "R@10"]
    assert [row.split()[0] for row in rows] == ["0", "0.1", "0.2", "0.3", "0.5", "1", "2"]


@pytest.mark.parametrize("signal", OPTIONAL_SIGNALS)
def test_the_page_of_search_has_the_weight_of_each_optional_signal(signal: str) -> None:
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{signal}` |")]
    assert row.endswith(f"| off; {OPTIONAL_SIGNALS[signal]:g} if switched on |")
