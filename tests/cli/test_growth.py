"""A person judges what an agent proposes: proposals, approve, reject and revoke."""

import json
from pathlib import Path

import pytest

import cerata
from cerata.agents.growth.proposals import aligned_metadata

from .conftest import Run


@pytest.fixture
def proposed(run: Run, tmp_path: Path) -> Path:
    """A memory in which event 12 proposes a tool, and event 13 a trait."""
    path = tmp_path / "memory.cera"
    with cerata.open(path) as store:
        for number in range(11):
            store.put_frame(f"note {number}")
        agent = cerata.Agent(store, "wyatt")
        agent.propose("Use ripgrep.", target="scaffold/tools")
        agent.propose("I keep my word.")
    return path


def test_the_commands_of_the_page_judge_a_proposal(run: Run, proposed: Path) -> None:
    """docs/continuity.md shows them."""
    code, out, _ = run("agents", "proposals", "--agent", "wyatt")
    assert code == 0
    assert "    #12  wyatt  scaffold/tools, open: Use ripgrep.\n" in out
    assert "    #13  wyatt  identity, open: I keep my word.\n" in out
    assert "aligned: no, no line of SOUL is named" in out
    endings: list[str] = []
    for verb in ("approve", "reject", "revoke"):
        code, out, _ = run("agents", "judge", verb, "12", "--actor", "anna")
        assert (code, out.split("\n")[0][:14]) == (0, "    #12  wyatt")
        endings.append(out.split("\n")[-2])
    assert endings == [
        "#12 approved by event 14",
        "#12 rejected by event 15",
        "#12 revoked by event 16",
    ]
    code, out, _ = run("agents", "judge", "revoke", "#12", "--actor", "bob")
    assert (code, out.split("\n")[-2]) == (0, "#12 is revoked already, by event 16")


def test_json_has_the_proposal_after_the_verdict(run: Run, proposed: Path) -> None:
    """And the receipt of the verdict."""
    listed = json.loads(run("agents", "proposals", "--json")[1])
    content = listed["proposals"][0]["content"]
    code, out, _ = run(
        "agents", "judge", "approve", "12", "--actor", "anna", "--content", content, "--json"
    )
    answer = json.loads(out)
    assert (code, answer["id"], answer["added"]) == (0, 14, True)
    assert answer["proposal"]["status"] == "approved"
    assert answer["proposal"]["gates"]["approved"]["reason"] == "approved by anna (event 14)"
    past = json.loads(run("agents", "proposals", "--at", "13", "--json")[1])
    assert [each["status"] for each in past["proposals"]] == ["open", "open"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("agents", "judge", "approve", "12"), 2, "--actor"),
        (("agents", "judge", "approve", "12", "--actor", ""), 2, "actor is empty"),
        (("agents", "judge", "approve", "13", "--actor", "anna"), 5, "gate 1, settled"),
        (
            ("agents", "judge", "approve", "12", "--actor", "anna", "--content", "00" * 32),
            5,
            "differs",
        ),
        (
            ("agents", "judge", "approve", "12", "--actor", "anna", "--content", "xy"),
            2,
            "hexadecimal",
        ),
        (("agents", "judge", "reject", "1", "--actor", "anna"), 6, "no proposal 1"),
        (("agents", "judge", "reject", "99", "--actor", "anna"), 6, "no proposal 99"),
        (
            ("agents", "judge", "reject", "12", "--actor", "anna", "--scope", "tenant=beta"),
            6,
            "no proposal",
        ),
    ],
)
def test_a_refused_verdict_writes_nothing(
    run: Run, proposed: Path, arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    """The error names the gate, the option or the id."""
    code, _, err = run(*arguments)
    assert code == exit_code
    assert words in err
    with cerata.open(proposed, mode="r") as store:
        assert store.head.seq == 13


def test_a_closed_proposal_is_shown_and_refused(run: Run, proposed: Path) -> None:
    """A newer text has another id."""
    with cerata.open(proposed) as store:
        store.supersede(12, "Use ag.")
    code, out, err = run("agents", "judge", "approve", "12", "--actor", "anna")
    assert code == 5
    assert "superseded by frame 14" in err
    assert "Use ripgrep." in out


def test_a_memory_without_proposals_says_so(run: Run, tmp_path: Path) -> None:
    """An empty answer would look like a fault."""
    run("put", "a note", "-f", "memory.cera")
    assert run("agents", "proposals") == (0, "There is no proposal.\n", "")


def test_the_gates_show_the_line_of_soul(run: Run, proposed: Path) -> None:
    """A person sees on what the assessment rests."""
    with cerata.open(proposed) as store:
        metadata = aligned_metadata(13, 3)
        store.put_frame("YES 3", kind="assessment", metadata=metadata)
    assert "aligned: yes, with line 3 of SOUL (#14)" in run("agents", "proposals")[1]
