"""A verb says what it did: each writing verb with each kind of id, and with an empty selection."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import cerata
from cerata.agents import judge
from cerata.engine.disk.environment import Environment

from ..clocks import StandingClock
from .conftest import Run, verbs

WRITES: Final[Mapping[str, tuple[str, ...]]] = {
    "update": ("ID --title Ports", "ID --text new", "ID --by FRAME", "FRAME --by ID"),
    "delete": ("ID", "ID FRAME", "FRAME ID", "ID ID"),
    "time restore": ("ID", "ID --expires never"),
    "facts assert": (
        "anna visits rome --evidence ID",
        "anna visits rome --because ID",
        "--instead ID --object rome",
    ),
    "facts retract": ("ID", "ID FACT", "ID ID"),
    "facts link": ("ID depends_on FACT", "FACT depends_on ID", "--remove ID"),
    "agents judge": (
        "approve ID --actor anna",
        "reject ID --actor anna",
        "revoke ID --actor anna",
    ),
    "facts extract": ("ID", "ID ID"),
    "agents slots": ("notes --agent wyatt --delete #ID", "notes --agent wyatt --delete ID"),
}
"""The arguments of each verb that writes what an id names."""

OTHERS: Final = {
    # They write, and take no id of a thing to change.
    *("put", "remember", "recall", "search", "file import", "time tag", "agents reflect"),
    *("time fork", "admin mcp", "agents assemble", "admin tune", "admin crash-test"),
    *("admin tour", "file maintain", "file compact", "file backup", "file export"),
    "admin completion",
    # They read; list also records uses of what it prints, and doctor repairs the file.
    *("show", "list", "log", "info", "facts list", "facts graph", "facts why"),
    *("time explain", "time history", "time diff", "time follow", "time bisect"),
    *("agents runs", "agents refs", "agents proposals", "agents talk"),
    *("file verify", "file doctor"),
}

CURRENT: Final = {"superseded": "frame", "corrected": "fact"}
"""For each kind of id with a later version, the kind of the current id."""

FRAMES: Final = ("delete", "update")
FACTS: Final = ("facts assert --instead", "facts retract")
"""The commands that change a current thing alone, and refuse an earlier version."""

UNCHANGED: Final = ("nothing was written", ", unchanged", "already")


def made(path: Path) -> dict[str, int]:
    """Write a memory with a thing of each kind, and return their ids."""
    earlier = Environment(clock=StandingClock(1_772_355_600_000_000))
    with cerata.open(path, environment=earlier) as store:
        expiry = store.history.view().now + timedelta(days=1)
        ids = {"superseded": store.put_frame("old door code").id}
        ids["frame"] = store.supersede(ids["superseded"], "new door code").id
        ids["deleted"] = store.put_frame("gone").id
        store.delete(ids["deleted"])
        ids["expired"] = store.put_frame("milk", options=cerata.PutOptions(expires=expiry)).id
        ids["corrected"] = store.assert_fact("anna", "likes", "tea").id
        ids["fact"] = store.correct_fact(ids["corrected"], object="coffee").id
        ids["retracted"] = store.assert_fact("bob", "likes", "tea").id
        store.retract_fact(ids["retracted"])
        cause = store.assert_fact("eve", "likes", "tea").id
        ids["link"] = store.graph.link(ids["fact"], "supports", cause).id
        ids["unlinked"] = store.graph.link(cause, "supports", ids["fact"]).id
        store.graph.unlink(ids["unlinked"])
        memory = {"notes": cerata.MemorySpec(tier="semantic", type="list")}
        agent = cerata.Agent(store, "wyatt", memory=memory)
        ids["value"] = agent.slot("notes").append("a value").id
        ids["gone value"] = agent.slot("notes").append("another value").id
        agent.slot("notes").delete(ids["gone value"])
        ids["proposal"] = agent.propose("Use ripgrep.", target="scaffold/tools").id
        ids["rejected"] = agent.propose("Use fd.", target="scaffold/tools").id
        judge(store, agent.proposals()[1], "reject", actor="anna")
    return {**ids, "zero": 0, "unknown": 9_999}


def head_of(path: Path) -> int:
    with cerata.open(path, mode="r") as store:
        return store.head.seq


def test_each_verb_is_in_a_table() -> None:
    """A new verb is tried with bad ids, or a person decided that it takes none."""
    assert verbs().keys() == {*WRITES} | OTHERS
    assert not OTHERS & {*WRITES}


@pytest.mark.parametrize(
    ("verb", "words"), [(verb, words) for verb, rows in WRITES.items() for words in rows]
)
def test_a_verb_reports_its_batch_or_writes_nothing(
    run: Run, tmp_path: Path, verb: str, words: str
) -> None:
    """An answer that says done has an event, and a refusal has none and names the current id."""
    ids = made(tmp_path / "made.cera")
    whole = (tmp_path / "made.cera").read_bytes()
    before = head_of(tmp_path / "made.cera")
    path = tmp_path / "memory.cera"
    outcomes = set[bool]()

    def called(name: str, *options: str) -> tuple[int, str, str, int]:
        path.write_bytes(whole)
        named = {"ID": ids[name], "#ID": f"#{ids[name]}", "FRAME": ids["frame"]}
        texts = {**named, "FACT": ids["fact"]}
        arguments = [str(texts.get(word, word)) for word in words.split()]
        code, out, err = run(*verb.split(), *arguments, "-f", str(path), *options)
        return code, out, err, head_of(path) - before

    for name in ids:
        code, out, err, written = called(name)
        outcomes.add(code == 0)
        values: dict[str, Any] = {"error": err}
        if not code or name in CURRENT:
            json_code, answer, _, _ = called(name, "--json")
            values = json.loads(answer)
            assert code == json_code, (name, out, err)
        if code:
            assert (out if verb != "agents judge" else "", written) == ("", 0)
            assert err.startswith("error: "), name
            assert "error" in values, name
        elif written:
            assert not any(word in out for word in UNCHANGED), (name, out)
            assert values.get("added", True), name
        else:
            assert any(word in out for word in UNCHANGED), (name, out)
            assert values["added"] is False, name
        refusing = FRAMES if CURRENT.get(name) == "frame" else FACTS
        if name in CURRENT and f"{verb} {words}".startswith(refusing):
            assert code == 5, name
            assert f"{CURRENT[name]} {ids[CURRENT[name]]}" in err, (name, err)
    assert False in outcomes
    assert True in outcomes or words != WRITES[verb][0]


def filtering() -> dict[str, list[str]]:
    """Return the verbs that take filters of frames, with the words that each needs."""
    needed = {"search": ["tea"], "recall": ["tea"], "file maintain": ["--only", "embed"]}
    taking = {verb for verb, one in verbs().items() if "--absent" in one._option_string_actions}
    words = {verb: needed.get(verb, []) for verb in taking}
    return {**words, "list --by tag": [], "list --by content": []}


@pytest.mark.parametrize("option", ["--tag", "--kind", "--role", "--absent", "--where"])
@pytest.mark.parametrize("value", ["", " ", "\t"])
def test_an_empty_selection_is_refused(run: Run, tmp_path: Path, option: str, value: str) -> None:
    """`--absent "$UNSET"` closed every frame, and `--tag x --kind "$UNSET"` all of the tag."""
    with cerata.open(tmp_path / "memory.cera") as store:
        store.put_frame("A note.", tags=["x"])
    filtered = filtering()
    assert {"delete", "facts extract", "file maintain", "list"} <= {*filtered}
    for verb, words in filtered.items():
        for further in ([], ["--tag", "x"]):
            code, out, err = run(*verb.split(), *words, *further, option, value)
            assert (code, out) == (2, ""), verb
            assert err.startswith("error: "), verb
    assert head_of(tmp_path / "memory.cera") == 1


def test_a_delete_without_a_match_says_so(run: Run, tmp_path: Path) -> None:
    """It closes nothing, counts nothing, and names the tag that no frame has."""
    with cerata.open(tmp_path / "memory.cera") as store:
        store.put_frame("A note.", tags=["draft"])
    code, out, err = run("delete", "--tag", "drafts")
    assert (code, out) == (0, "closed 0 frames\n")
    assert err == "note: no recent frame has the tag 'drafts'; did you mean 'draft'?\n"
    answer = json.loads(run("delete", "--tag", "drafts", "--json")[1])
    assert (answer["added"], answer["deleted"]) == (False, [])
