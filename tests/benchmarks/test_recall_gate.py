"""What sessions recall: a small set guards the profiles and the gate, as the table has them."""

import pytest

from benchmarks.retrieval.recall_gate import main, recall_rows
from benchmarks.retrieval.synthetic import synthetic_set
from cerata.agents.continuity.retrieval import GATED, PROFILE


def test_the_gate_keeps_what_has_no_evidence_out() -> None:
    """The gate costs evidence, and keeps most of the unrelated questions from recalling any."""
    rows = {(row.profile, row.gated): row for row in recall_rows(synthetic_set())}
    assert [*rows] == [
        *(("chat", False), ("chat", True)),
        *(("continuity", False), ("continuity", True)),
    ]
    for profile in ("chat", "continuity"):
        off, on = rows[profile, False], rows[profile, True]
        assert off.any >= on.any > 0.1
        assert off.foreign < 0.2
        assert on.foreign > 0.6
        assert on.any + on.foreign > off.any + off.foreign
        assert (off.adversarial, on.adversarial) == (None, None)
    assert rows["chat", False].any >= 0.65
    assert rows["chat", True].any >= rows["continuity", True].any
    default = rows[PROFILE, GATED]
    assert default.any + default.foreign == max(row.any + row.foreign for row in rows.values())


def test_the_command_prints_a_row_for_each_profile_and_gate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["synthetic"]) == 0
    head, columns, *rows = capsys.readouterr().out.splitlines()
    assert "60 answered and 0 adversarial questions" in head
    assert columns.split()[:4] == ["profile", "gate", "any", "all"]
    assert [row.split()[:2] for row in rows] == [
        *(["chat", "off"], ["chat", "on"]),
        *(["continuity", "off"], ["continuity", "on"]),
    ]


def test_a_set_without_its_file_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["locomo"])
