"""Packs of users: opened by name, refused with a typed error, and carried by a program without."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import cerata
from cerata.engine.packs import Pack, Role, State

ROOT: Final = Path(__file__).parents[1]

WITH: Final = """
import sys, cerata, garden, garden_events
with cerata.open(sys.argv[1], packs=[garden.PACK], actor="anna") as store:
    {work}
"""

WITHOUT: Final = """
import sys, json, cerata
{before}
from cerata.engine.events import UnknownBody
with cerata.open(sys.argv[1]) as store:
    {work}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the modules of the pack on the page."""
    page = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python[^\n]*\n# (garden\w*\.py)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(program: str, folder: Path, *words: str) -> str:
    """Return the output of a program in a process of its own, which imports from the folder."""
    ended = subprocess.run(
        [sys.executable, "-c", program, *(words or ("garden.cera",))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_pack_of_a_user_adds_events_rows_rules_and_owners(folder: Path) -> None:
    """A feature outside Cerata then takes as few steps as one inside."""
    work = """
    fern = store.put_frame("a fern", kind="plant")
    store.append(garden_events.Water(plant=fern.id, litres=2))
    store.append(garden_events.Water(plant=fern.id, litres=3))
    assert dict(store.stream.projection("garden").rows) == {fern.id: 5}
    try:
        store.append(garden_events.Water(plant=fern.id, litres=100))
    except cerata.InvalidInput as error:
        print(error.what)
    from cerata.memory.batch.writer import acting
    from cerata.memory.frames.event_summary import act_of, describe
    try:
        acting(store, cerata.Role.TOOL).delete(fern)
    except cerata.Refused as error:
        print(error.what)
    print(*(f"{act_of(event.type)} {describe(event)}" for event in store.log()), sep=", ")
    store.checkpoint()
    assert store.verify().ok
    assert "garden" in store.stream.digests()
    """
    assert run(WITH.format(work=work), folder).splitlines() == [
        "A plant drowns",
        "A tool of a model cannot change frame 1, which belongs to the garden",
        "put a fern, water 2 l for #1, water 3 l for #1",
    ]


WATERED: Final = """
    fern = store.put_frame("a fern on the sill", kind="plant")
    store.append(garden_events.Water(plant=fern.id, litres=2))
    store.checkpoint()
"""

DIGESTS: Final = """
    print({name: value.hex() for name, value in store.stream.digests().items()})
    print(dict(store.stream.projection("garden").rows))
"""


def test_a_file_without_its_pack(folder: Path) -> None:
    """It opens, is searched, verified and checkpointed, and the pack finds its state again."""
    run(WITH.format(work=WATERED), folder)
    before = run(WITH.format(work=DIGESTS), folder)
    work = """
    [event] = [event for event in store.log() if event.type == "garden.water"]
    assert isinstance(event.body, UnknownBody), event.body
    assert [hit.text for hit in store.search("sill")] == ["a fern on the sill"]
    assert "fern" in store.recall("a fern", max_tokens=100).text
    verified = store.verify()
    assert verified.ok
    print(*verified.missing)
    later = UnknownBody(kind="putFrame", kind_version=9, data=b"\\x80")
    for body in (event.body, later):
        try:
            store.append(body)
        except cerata.Unsupported as error:
            print(error.what, "|", error.remedy)
    assert len(list(store.log())) == 2
    store.checkpoint()
    saved = store._log.toc().projections
    print([key for key in saved if key.startswith("garden/")])
    store.upkeep.compact()
    print([key for key in store._log.toc().projections if key.startswith("garden/")])
    """
    refusal = (
        "Version 1 of the event 'garden.water' cannot be written: no pack of this process has it | "
        "Open the store with its pack, open(packs=…), or upgrade Cerata."
    )
    assert run(WITHOUT.format(before="", work=work), folder).splitlines() == [
        "garden: not recomputed: pack or projection garden is missing",
        refusal,
        refusal.replace("1 of the event 'garden.water'", "9 of the event 'putFrame'"),
        "['garden/1/16ec773a0a56a825']",
        "['garden/1/16ec773a0a56a825']",
    ]
    assert run(WITH.format(work=DIGESTS), folder) == before


def test_a_file_without_a_pack_of_cerata(tmp_path: Path) -> None:
    """A build may leave out a pack that Cerata ships; its events and rows come to no harm."""
    write = """
import sys, cerata
from cerata.integrations.langgraph.events import PutCheckpoint
with cerata.open(sys.argv[1], actor="anna") as store:
    agent = cerata.Agent(store, "wyatt", memory={"notes": cerata.scratchpad()})
    agent.propose("Use ripgrep.", target="scaffold/tools")
    with agent.session("s", thread="taxes") as session:
        session.exchange("When is the tax due?", "On Thursday.")
    with agent.run("r", inputs={"day": "Thursday"}):
        pass
    cerata.agents.judge(store, agent.proposals()[0], "approve", actor="anna")
    store.append(PutCheckpoint(
        thread="t", ns="", checkpoint_id="c", encoding="x", checkpoint=b"1",
        metadata_encoding="x", metadata=b"2",
    ))
    store.checkpoint()
"""
    run(write, tmp_path)
    read = "import sys, cerata\nwith cerata.open(sys.argv[1]) as store:\n    "
    digests = read + "print(*sorted(store.stream.digests().items()), store.head)"
    before = run(digests, tmp_path)
    work = """
    assert sum(isinstance(event.body, UnknownBody) for event in store.log()) == 8
    store.search("ripgrep")
    print(*store.verify().missing, sep=", ")
    store.checkpoint()
    """
    said = run(WITHOUT.format(before="cerata.PACKS = ()", work=work), tmp_path)
    assert said == (
        "activities: not recomputed: pack or projection activities is missing, "
        "langgraph: not recomputed: pack or projection langgraph is missing, "
        "messages: not recomputed: pack or projection messages is missing, "
        "slots: not recomputed: pack or projection slots is missing, "
        "verdicts: not recomputed: pack or projection verdicts is missing\n"
    )
    assert run(digests, tmp_path) == before
    assert run(read + "assert store.verify().ok", tmp_path) == ""


def test_a_pack_of_the_command_line(folder: Path) -> None:
    """A verb reads the words of the pack that `--pack` names."""
    run(WITH.format(work=WATERED), folder)
    program = "import sys; from cerata.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ("log", "-f", "garden.cera", "--json")
    plain = json.loads(run(program, folder, *words))
    packed = json.loads(run(program, folder, "--pack", "garden", *words))
    summaries = [row["summary"] for row in packed["events"]]
    assert "2 l for #1" in summaries
    assert "2 l for #1" not in [row["summary"] for row in plain["events"]]


CLI: Final = "import sys; from cerata.cli import main; code = main(sys.argv[1:]); print(code)"


def test_verbs_of_a_pack_of_the_command_line(folder: Path) -> None:
    """`--pack` brings verbs, their help and their group, before the verb or after it."""
    run(WITH.format(work=WATERED), folder)
    words = ("garden", "watered", "-f", "garden.cera")
    assert run(CLI, folder, *words, "--pack", "garden") == "#1: 2 l\n0\n"
    answer = run(CLI, folder, "--pack=garden", *words, "--json")
    assert json.loads(answer.rpartition("}")[0] + "}") == {"file": "garden.cera", "litres": 2}
    assert run(CLI, folder, *words) == "2\n"
    text = run("import sys; from cerata.cli import main; main()", folder, "--pack=garden", "--help")
    assert "garden   watered" in text


def test_options_of_a_pack_for_another_verb(folder: Path) -> None:
    """The pack's function runs with its first option, and its other options need the first."""
    (folder / "shed.py").write_text(SHED.format(parts=ADDITION), encoding="utf-8")
    words = ("--pack", "shed", "info", "-f", "x.cera")
    assert run(CLI, folder, *words, "--shed", "--tools", "3") == "3 tools\n0\n"
    assert run(CLI, folder, *words, "--tools", "3") == "2\n"
    run(WITH.format(work=WATERED), folder)
    assert run(CLI, folder, *words[:-1], "garden.cera").endswith("0\n")


ODD: Final = """
from cerata.engine.packs import Arg, Option, Pack, Verb

def run_odd(options, output):
    output.line("done")

ARGUMENTS = (
    Arg("share", "in %", "?"),
    Option("--least N", "50% off, or {choices}", choices=("1", "2")),
)
PACK = Pack("odd", verbs=(Verb("odd", "admin", "100% of %s", "odd:run_odd", ARGUMENTS),))
"""


def test_an_odd_verb_of_a_pack(tmp_path: Path) -> None:
    """Its help is printed as written, a missing exit code is named, and a pack may come twice."""
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    program = CLI.replace("import sys;", "import sys; sys.stderr = sys.stdout;")
    words = ("--pack", "odd", "--pack", "odd", "admin")
    answer = run(program, tmp_path, *words, "odd")
    assert answer.startswith("done\nerror: The function 'odd:run_odd' ran, and returned None")
    assert answer.endswith("\n2\n")
    helped = "import sys; from cerata.cli import main; main(sys.argv[1:])"
    assert "100% of %s" in run(helped, tmp_path, *words, "--help")
    text = run(helped, tmp_path, *words, "odd", "--help")
    assert "100% of %s." in text
    assert "in %\n" in text
    assert "50% off, or 1, 2" in text
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)", encoding="utf-8")
    answer = run(program, tmp_path, "--pack", "leaving", "info")
    assert answer.startswith("error: --pack leaving names no pack: 0.")


SHED: Final = """
from cerata.engine.packs import Addition, Option, Pack, Verb

def run_shed(options, output):
    output.line(f"{{options.tools}} tools")
    return 0

PACK = Pack("shed", {parts})
"""

ADDITION: Final = (
    "additions=(Addition('info', 'shed:run_shed', "
    "(Option('--shed', 'look into the shed'), Option('--tools N', 'how many', type=int))),)"
)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("verbs=(Verb('put', 'everyday', '', 'shed:run_shed'),)", "The verb 'put' is taken"),
        ("verbs=(Verb('list', 'facts', '', 'shed:run_shed'),)", "The verb 'facts list' is taken"),
        ("verbs=(Verb('facts', 'everyday', '', 'shed:run_shed'),)", "The verb 'facts' is taken"),
        ("verbs=(Verb('A', 'facts', '', 'shed:run_shed'),)", "The verb 'facts A' is taken, or is"),
        ("verbs=(Verb('a', 'tools', '', 'shed:run_shed'),)", "There is no group 'tools'"),
        ("verbs=(Verb('slots', 'agents', '', 'shed:run_shed'),)", "The verb 'agents slots' is"),
        ("verbs=(Verb('a', 'facts', '', 'shed:no'),)", "'shed:no' cannot be loaded"),
        ("groups={'facts': 'facts'}", "The group 'facts' is taken"),
        ("groups={'agents': 'agents'}", "The group 'agents' is taken"),
        ("groups={'put': 'puts'}", "The group 'put' is taken"),
        ("additions=(Addition('no', 'shed:run_shed', (Option('--a', ''),)),)", "There is no verb"),
        (
            "additions=(Addition('info', 'shed:run_shed', ()),)",
            "There is no verb 'info' that takes",
        ),
        (
            "additions=(Addition('info', 'shed:run_shed', (Option('--head', ''),)),)",
            "The option 'info --head' is taken",
        ),
        (
            "additions=(Addition('put', 'shed:run_shed', (Option('--a', ''),) * 2),)",
            "An argument of the verb 'put' cannot be used: argument --a: conflicting option",
        ),
        (
            "additions=(Addition('put', 'shed:run_shed', (Option('a', ''),)),)",
            "An argument of the verb 'put' cannot be used",
        ),
        (
            "additions=(Addition('info', 'shed:run_shed', (Option('--json', ''),)),)",
            "The option 'info --json' is taken",
        ),
        (
            "additions=(Addition('info', 'shed:run_shed', (Option('--a A', '', dest='file'),)),)",
            "The value 'file' of info --a is that of another option",
        ),
        (
            "verbs=(Verb('a', 'facts', '', 'shed:run_shed', (Option('--a A', '', dest='json'),)),)",
            "The value 'json' of facts a --a is that of another option",
        ),
        ("verbs=(5,)", "A value of verbs must be Verb, not"),
        ("states=('a',)", "A value of states must be State, not"),
    ],
)
def test_a_verb_that_takes_what_is_taken_is_refused(
    tmp_path: Path, parts: str, message: str
) -> None:
    """A pack of a user then changes no command that another page explains."""
    (tmp_path / "shed.py").write_text(SHED.format(parts=parts), encoding="utf-8")
    program = CLI.replace("import sys;", "import sys; sys.stderr = sys.stdout;")
    text = " ".join(run(program, tmp_path, "--pack", "shed", "put", "-f", "x.cera", "a").split())
    assert message in text
    assert text.endswith(" 2")
    assert not (tmp_path / "x.cera").exists()


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("packs", "message"),
    [
        (Pack("garden"), "packs must be a list of packs"),
        ("garden", "packs must be a list of packs"),
        (["garden"], "'garden' is no pack"),
        ([Pack("The garden")], "cannot be named 'The garden'"),
        ([Pack("growth")], "The name 'growth' is taken by the pack 'growth'"),
        ([Pack("a"), Pack("a", acts={"b": "c"})], "The name 'a' is taken by the pack 'a'"),
        ([Pack("a", events={"judge": "a"})], "The wire name 'judge' is taken by the pack 'growth'"),
        (
            [Pack("a", events={"putFrame": "a"})],
            "The wire name 'putFrame' is taken by cerata.engine.events.PutFrame",
        ),
        (
            [Pack("a", states=(State("slots", "slots/1/0", "a:B"),))],
            "The state 'slots' is taken by the pack 'slots'",
        ),
        (
            [
                Pack(
                    "a",
                    states=(State("tags", "tags/1/0", "cerata.projections.rows.built_in:Tags"),),
                )
            ],
            "The projection name 'tags' is taken",
        ),
        (
            [Pack("a", states=(State("a", "a/1/0", "a:B", before="tags"),))],
            "The state 'a' is to be saved before a state of Cerata",
        ),
        ([Pack("a", importers={"langgraph-sqlite": "a:b"})], "The importer 'langgraph-sqlite'"),
        ([Pack("a", events={"a.b": "no_such"})], "'no_such' cannot be loaded: ModuleNotFound"),
        ([Pack("a", events={"a.b": "json"})], "The module 'json' registers no event 'a.b'"),
        ([Pack("a", rules=("json:NoRule",))], "'json:NoRule' cannot be loaded: AttributeError"),
        (
            [Pack("a", owns=(cerata.Owned("mine", Role.TOOL, ("identity",)),))],
            "The kind 'identity' is taken by identity",
        ),
    ],
)
def test_a_pack_that_takes_what_is_taken_is_refused(packs: Any, message: str) -> None:
    """Two owners of a name would write and read each other's events."""
    from cerata.engine.packs import packs as known

    before = known()
    with pytest.raises(cerata.InvalidInput) as caught:
        cerata.open(":memory:", packs=packs)
    assert message in caught.value.what
    assert caught.value.remedy
    assert known() == before


def test_a_missing_module_of_the_command_line_is_named(tmp_path: Path) -> None:
    """A misspelt name is an error of usage, not a traceback."""
    program = "import sys; from cerata.cli import main; print(main(sys.argv[1:]))"
    assert run(program, tmp_path, "--pack", "no_such", "put", "-f", "x.cera", "a") == "2\n"
    assert not (tmp_path / "x.cera").exists()
