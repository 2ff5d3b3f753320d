"""One story told through every verb: the same commands, clock and dice, and so the same words.

Each step is a command, or something that happens to the folder between two. A step has a name,
by which its golden file and its schema are found.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cerata
from cerata import Entity
from cerata.cli import main
from cerata.engine.disk.environment import Environment

from ..clocks import StandingClock
from ..inside import log_of

WORKLOAD = '''
import cerata
from cerata.fault_injection.testing import Workload, operation


class Pairs(Workload):
    """Puts shoes, of which two belong together."""

    @operation
    def put(self, store):
        store.put_frame("the left shoe")
        store.put_frame("the right shoe")

    def check(self, store):
        assert len(store) % 2 == 0, f"{len(store)} shoes"
'''

START_US = 1_772_355_600_000_000  # 2026-03-01 09:00 UTC
DOCUMENT = "# Bridge\n\n## When\nThe harbour bridge opens in May.\n\n## Who\nAnna builds it.\n"


def _change(folder: Path, environment: Environment) -> None:
    (folder / "notes" / "food.txt").write_text("Lunch is pizza.\n")


def _damage(folder: Path, environment: Environment) -> None:
    """Flip a bit of the first header page: the second one serves."""
    data = bytearray((folder / "copy.cera").read_bytes())
    data[100] ^= 1
    (folder / "hurt.cera").write_bytes(data)


def _lose(folder: Path, environment: Environment) -> None:
    """Flip a bit inside the events of the second of three segments: they are unreadable."""
    path = folder / "lost.cera"
    with cerata.open(path, environment=environment) as store:
        for texts in (["one", "two"], ["three"], ["four", "five", "six"]):
            for text in texts:
                store.put_frame(f"Note {text}.")
            store.checkpoint()
        segments = list(log_of(store).reader.segment_refs(log_of(store).snapshot))
    assert len(segments) == 3
    data = bytearray(path.read_bytes())
    data[segments[1].offset + segments[1].length // 2] ^= 4
    path.write_bytes(data)


def _learn(folder: Path, environment: Environment) -> None:
    """Two values of one predicate, a correction, and what cannot both be true."""
    with cerata.open(folder / "memory.cera", environment=environment) as store:
        store.graph.declare("opens at", functional=True)
        store.assert_fact("bridge", "opens at", "09:00", valid_from="2025-01-01", evidence=[3])
        store.assert_fact("bridge", "opens at", "08:00", valid_from="2026-03-01", evidence=[3])
        store.assert_fact("bridge", "opens at", "08:30", valid_from="2026-03-01", confidence=0.5)
        wrong = store.assert_fact("bridge", "spans", Entity("harbour"), valid_from="open")
        store.retract_fact(wrong)


def _connect(folder: Path, environment: Environment) -> None:
    """Who builds the bridge, and where she lives."""
    with cerata.open(folder / "memory.cera", environment=environment, actor="anna") as store:
        store.assert_fact("anna", "builds", Entity("bridge"), valid_from="open", evidence=[3])
        store.assert_fact("anna", "lives in", Entity("city"), valid_from="2024-05-01", evidence=[3])
        store.assert_fact("bridge", "belongs to", Entity("city"), valid_from="open")


def _tell(folder: Path, environment: Environment) -> None:
    with cerata.open(folder / "memory.cera", environment=environment) as store:
        store.put_frame("Berta lives in Oslo since 2021. Berta works at Acme and at home.")


def _spoil(folder: Path, environment: Environment) -> None:
    """Misspell a field in the third line of what was exported."""
    text = (folder / "facts.jsonl").read_text().replace("09:00", "09:05", 1)
    (folder / "spoiled.jsonl").write_text(text.replace('"confidence"', '"confidense"', 1))


COUNTS = """import cerata
from cerata.events import PutFrame


class Kinds(cerata.RowProjection):
    name = "counts"
    handles = (PutFrame,)

    def apply(self, events):
        for event in events:
            self.rows[event.body.kind] = self.rows.get(event.body.kind, 0) + 1


class Words(Kinds):
    version = 2

    def apply(self, events):
        super().apply(event for event in events if event.body.title is None)
"""


def _judge(folder: Path, environment: Environment) -> None:
    """Talks in which questions have more of the words, and judgements that prefer the answers."""
    lines: list[str] = []
    with cerata.open(folder / "talks.memory", environment=environment) as store:
        for place, word in enumerate(("bridge", "mill", "ferry", "kiln", "dune", "grove")):
            for talk in range(4):
                track = f"{word} {talk}"
                store.put_frame(
                    f"Which {word}, the {word}?",
                    role="anna",
                    options=cerata.PutOptions(track=track),
                )
                answer = store.put_frame(
                    f"The {word} is here.", role="ben", options=cerata.PutOptions(track=track)
                )
                relevant = [f"#{answer.id}"]
                query = {"text": f"{word}?", "relevant": relevant, "group": f"week {place % 3}"}
                lines.append(json.dumps({"query": query}))
    (folder / "judged.jsonl").write_text("\n".join(lines))
    (folder / "policy.toml").write_text('policy = "tiered"\nmax_tokens = 60\norder = "time"\n')
    (folder / "small.toml").write_text("[chunking]\npassage_tokens = 20\noverlap_tokens = 0\n")
    (folder / "counts.py").write_text(COUNTS)
    for name in ("Kinds", "Words"):
        (folder / f"{name}.toml").write_text(f'projection = "counts:{name}"\n')
    (folder / "misjudged.jsonl").write_text("\n".join([*lines, lines[0].replace("#2", "#99")]))
    (folder / "few.jsonl").write_text(lines[0])


def _write_workload(folder: Path, environment: Environment) -> None:
    (folder / "shoes.py").write_text(WORKLOAD)


def _mend_workload(folder: Path, environment: Environment) -> None:
    """Put both shoes at once."""
    puts = """        store.put_frame("the left shoe")
        store.put_frame("the right shoe")"""
    whole = '        store.put_frames(["the left shoe", "the right shoe"])'
    assert puts in WORKLOAD
    (folder / "shoes.py").write_text(WORKLOAD.replace(puts, whole))


AGENT = """
import cerata


def look_up(place):
    return {"place": place, "lanes": 4}


@cerata.agent("surveyor", version="2")
def survey(run, places):
    return [run.call("look.up", look_up, place=place).value["lanes"] for place in places]


def hurried(run, places):
    run.call("look.up", look_up, place=places[-1])
"""


def _survey(folder: Path, environment: Environment) -> None:
    """A run of an agent, recorded with the name of its function."""
    (folder / "surveyor.py").write_text(AGENT)
    names: dict[str, Any] = {"__name__": "surveyor"}
    exec(compile(AGENT, str(folder / "surveyor.py"), "exec"), names)  # noqa: S102 - the text above
    with cerata.open(folder / "survey.memory", environment=environment) as store:
        names["survey"](store, id="s-1", places=["bridge", "mill"])


SLOTS = """\
memory:
  prefs: {scope: user_id, ttl: 30d, description: what a user wants}
  notes: {tier: semantic, scope: user_id, max_items: 100}
"""


def _declare_slots(folder: Path, environment: Environment) -> None:
    (folder / "memory.yaml").write_text(SLOTS)
    (folder / "wrong.yaml").write_text(SLOTS.replace("scope: user_id, ttl", "scop: user_id, ttl"))


def _prices(tickers: list[str]) -> dict[str, list[float]]:
    return {ticker: [152.3, 198.2] for ticker in tickers}


def _leave_records(folder: Path, _: Environment) -> None:
    """Lines of records: good ones, and some that cannot be imported."""
    good = '{"text": "The bridge is closed.", "id": 1}\n{"text": "Lunch is soup."}\n'
    (folder / "good.jsonl").write_text(good)
    (folder / "records.jsonl").write_text(f'{good}{{"text": ""}}\n{{"words": "b"}}\n')


def _leave_run(folder: Path, environment: Environment) -> None:
    """An ended run, and a run that is still open."""
    with cerata.open(folder / "analyst.memory", environment=environment) as store:
        agent = cerata.Agent(store, "analyst")
        with agent.run("r-1") as run:
            run.put("price", 3)
        run = agent.run("r-2", inputs={"city": "Bern"})
        run.call("market.fetch", _prices, tickers=["AAPL"])


def _propose(folder: Path, environment: Environment) -> None:
    """A proposal of a part of the scaffold, and one of the identity."""
    with cerata.open(folder / "wyatt.memory", environment=environment) as store:
        agent = cerata.Agent(store, "wyatt")
        agent.propose("Search with ripgrep.", target="scaffold/tools")
        agent.propose("I keep my word.")


def _talk(folder: Path, environment: Environment) -> None:
    """Two sessions of an agent in one thread, a day apart, and an open one in another thread."""
    with cerata.open(folder / "talk.memory", environment=environment) as store:
        agent = cerata.Agent(store, "wyatt")
        for day, name in (("2026-02-26", "s-1"), ("2026-02-27", "s-2")):
            with agent.session(name, thread="taxes") as session:
                session.exchange(
                    "No, I meant the deadline. I am scared of the deadline. I will call tomorrow.",
                    "The deadline is on Friday; the deadline stays.",
                    created=f"{day}T10:00:00Z",
                )
        agent.session("s-3", mode="code").message("user", "The build fails.")


CRASH_TEST = "crash-test"


@dataclass(frozen=True)
class Step:
    """A command and its arguments, and the exit code that it ends with."""

    name: str
    arguments: tuple[str, ...]
    code: int = 0

    @property
    def verb(self) -> str:
        """The first part of the name, which is that of the answer's schema."""
        return CRASH_TEST if self.name.startswith(CRASH_TEST) else self.name.partition("-")[0]


def _step(line: str, name: str | None = None, code: int = 0) -> Step:
    words = tuple(re.findall(r"'[^']*'|\S+", line))
    arguments = tuple(word.strip("'") for word in words)
    return Step(name or (arguments[0] if arguments else "welcome"), arguments, code)


_ENDPOINT = "--url http://localhost/v1/embeddings --model m --revision 1 --dimension 2"
"""One that is not asked, since there is nothing to embed."""

_ASKED = "'when does the bridge open?'"
_THIS = "-f memory.cera"
_NEW = "-f new.memory"
_TALKS = "-f talks.memory"
_ANALYST = "-f analyst.memory"
_WYATT = "-f wyatt.memory"
_TALK = "-f talk.memory"
_USER = "--scope user_id=u1"

STORY: tuple[Step | Callable[[Path, Environment], None], ...] = (
    _step(""),
    _step("remember notes --dry-run", "remember-dry"),
    _step("remember notes --tag team"),
    _change,
    _step("remember notes", "remember-again"),
    _step("remember notes nowhere.md", "remember-skipped", 1),
    _step("put The staging database listens on port 5433. --tag infra"),
    _step(
        "update 8 --text 'The staging database listens on port 5434 now.' --actor anna"
        " --reason moved",
        "supersede",
    ),
    _step("time tag before-the-move", "tag"),
    _step("delete 6 --actor ben --reason 'out of date'"),
    _step("recall 'when does the bridge open?'"),
    _step("recall 'when does the bridge open?' --format markdown", "recall-markdown"),
    _step("recall 'when does the bridge open?' --format messages", "recall-messages"),
    _step("recall zebra", "recall-nothing"),
    _step("recall zebra --max-tokens 40 --no-floor", "recall-fallback"),
    _step("search bridge harbour"),
    _step("search bridge harbour --explain -k 1", "search-explain"),
    _step("search bridge --tag taem", "search-nothing"),
    _step("show 3 8"),
    _step("list", "frames"),
    _step("list --at before-the-move --superseded", "frames-then"),
    _step("list --by content --oldest-first -n 2", "timeline"),
    _step("log"),
    _step("log --oneline -n 5", "log-oneline"),
    _step("log --actor anna --since 2026-03-01", "log-actor"),
    _step("log --type tag --until 2026-02-01", "log-nothing"),
    _step("log --who", "audit"),
    _step("log --who --actor ben --markdown", "audit-markdown"),
    _step("time history 8", "history"),
    _step("time history --by-field 8", "blame"),
    _step("time diff 8", "diff"),
    _step("time diff 2 8 --query 'when does the bridge open?'", "diff-query"),
    _step("time bisect --query bridge --forbid may --good 0 --bad 8", "bisect"),
    _step(
        "time bisect --run 'test $CERATA_BASIS -lt 6' --bad 8 --batches --checks 1", "bisect-run"
    ),
    _step("time bisect --query bridge --bad 8", "bisect-usage", 2),
    _step("time tag", "tags"),
    _learn,
    _step("facts list bridge", "facts"),
    _step("facts list --ended --retracted --at HEAD", "facts-retracted"),
    _step("facts list bridge --evidence", "facts-evidence"),
    _step("time history --by-field 16", "blame-fact"),
    _step("time history --by-field 99", "blame-nothing", 6),
    _step("facts list --matching 'when does the bridge open?'", "facts-matching"),
    _step("facts list Bridge", "facts-nothing"),
    _step("time diff HEAD~5 HEAD", "diff-facts"),
    _step("time diff HEAD HEAD --valid-at 2025-06-01 2026-06-01", "diff-true"),
    _step("facts list bridge --conflicts", "facts-conflicts"),
    _step("facts list bridge --ended --retracted --plot bridge.svg", "facts-plot"),
    _step("file export facts.jsonl --facts --history", "export"),
    _step("file import facts.jsonl -f carried.memory", "import"),
    _step("file import facts.jsonl -f carried.memory", "import-again"),
    _spoil,
    _step("file import spoiled.jsonl -f carried.memory", "import-spoiled", 2),
    _step("log --oneline -n 6", "log-facts"),
    _connect,
    _tell,
    _step("facts extract --dry-run", "extract-dry"),
    _step("facts extract", "extract"),
    _step("facts extract", "extract-again"),
    _step("log --oneline -n 3", "log-extract"),
    _step("facts graph bridge", "graph"),
    _step("facts graph bridge --hops 2 --plot around.png", "graph-plot"),
    _step("facts graph bridge --hops 2", "graph-walk"),
    _step("facts graph bridge --to city", "graph-paths"),
    _step("facts graph bridge --together", "graph-together"),
    _step("facts graph Bridge", "graph-nothing"),
    _step("facts link 20 depends_on 19", "link"),
    _step("facts link 19 generated_from 3", "link-frame"),
    _step("facts link 16 invalidates 15", "link-attack"),
    _step("facts why 20", "why"),
    _step("facts list bridge --invalid", "facts-invalid"),
    _step("facts link --remove 32", "unlink"),
    _step("facts link --remove 32", "unlink-again"),
    _step("facts link 20 depends-on 19", "link-refused", 2),
    _step("facts link 19 supports 3", "link-frame-refused", 2),
    _step("file verify", "verify"),
    _step("file maintain --only rebuild", "rebuild"),
    _step("file maintain --only checkpoint", "checkpoint"),
    _step("info"),
    _step("info --head", "head"),
    _step(f"file verify --head 8:{32 * '0a'}", "verify-head", 3),
    _step(f"file verify --head 99:{32 * '0a'}", "verify-head-later", 3),
    _step("file verify --head 8", "verify-head-refused", 2),
    _step("file backup copy.cera", "backup"),
    _step("file doctor -f memory.cera", "doctor"),
    _damage,
    _step("file doctor -f hurt.cera", "doctor-hurt", 1),
    _step("file doctor --repair -f hurt.cera", "repair"),
    _step("file doctor --repair -f hurt.cera", "repair-nothing"),
    _lose,
    _step("file verify -f lost.cera", "verify-lost", 1),
    _step("file doctor -f lost.cera", "doctor-lost", 1),
    _step("file doctor --repair -f lost.cera --to left.cera", "repair-refused", 3),
    _step("file doctor --repair -f lost.cera --to left.cera --drop-damaged", "repair-lost"),
    _step("admin tour notes -f tour.cera", "tour"),
    _write_workload,
    _step("admin crash-test shoes.py --stories 5 --jobs 1", "crash-test-broken", 1),
    _step("admin crash-test shoes.py --replay crash-cases/put.1.case", "crash-test-replay", 1),
    _mend_workload,
    _step("admin crash-test shoes.py --replay crash-cases/put.1.case", "crash-test-replay-again"),
    _step("admin crash-test shoes.py --stories 5 --jobs 1", "crash-test"),
    _step(f"file maintain --only embed -f memory.cera --tag none {_ENDPOINT}", "embed"),
    _step("file maintain --only embed -f memory.cera --revision 2", "embed-refused", 2),
    _step(
        f"recall {_ASKED} --policy tiered --order time --framing --record {_THIS}", "recall-record"
    ),
    _step(f"recall bridge --record --at HEAD {_THIS}", "recall-refused", 2),
    _step(f"list --by access 3 --record {_THIS}", "access-record"),
    _step(f"list --by access {_THIS}", "access"),
    _step(f"list --by access 3 --record --at HEAD {_THIS}", "access-refused", 2),
    _step(f"search bridge --profile used --explain -k 1 {_THIS}", "search-used"),
    _step(f"put The gate is shut. --uri gate --replace {_THIS}", "put-uri"),
    _step(f"put The gate is open. --uri gate --replace {_THIS}", "put-replace"),
    _step(f"update '#38' --title Gate --tag gate --expires 2030-01-01 {_THIS}"),
    _step(f"update 40 --tag gate {_THIS}", "update-nothing"),
    _step(f"update 40 {_THIS}", "update-refused", 2),
    _step(f"delete --tag gate {_THIS}", "delete-filter"),
    _step(f"time restore 40 --expires never {_THIS}", "restore"),
    _step(f"put Wet paint. --expires 2020-01-01 {_THIS}", "put-expired", 2),
    _step(f"file maintain --only sweep {_THIS}", "sweep"),
    _step(f"list --by tag {_THIS}", "values"),
    _step(f"list --by uri --prefix gate {_THIS}", "values-uri"),
    _step(
        "put 'The bridge has four lanes.' --kind message --role user --track chat --label heard"
        f" --metadata lanes:=4 --metadata city=Oslo --date 2026-05-01 {_NEW}",
        "put-message",
    ),
    _step(f"search bridge --group -k 1 {_THIS}", "search-group"),
    _step(f"search bridge --offset 1 -k 1 {_THIS}", "search-offset"),
    _step(f"recall bridge --neighbours 1 --superseded {_THIS}", "recall-neighbours"),
    _step(f"list --where 'metadata.city:Oslo created:today' {_NEW}", "frames-where"),
    _step(f"list --where bridge {_NEW}", "frames-where-refused", 2),
    _step(f"put x --metadata lanes {_NEW}", "put-refused", 2),
    _step(f"put 'The bridge is grey.' --scope user=anna {_NEW}", "put-scope"),
    _step(f"list --scope user=anna {_NEW}", "frames-scope"),
    _step(
        f"facts assert bridge has 4 --as number --valid-from 2026-05-01 --evidence #1 {_NEW}",
        "assert",
    ),
    _step(f"facts assert bridge has four --as number {_NEW}", "assert-refused", 2),
    _step(f"facts assert --instead #3 --object 6 --as number --confidence 0.9 {_NEW}", "correct"),
    _step(f"facts retract #5 {_NEW}", "retract"),
    _step(f"log -n 2 {_NEW}", "log-assert"),
    _judge,
    _step(f"admin tune judged.jsonl --profile words {_TALKS}", "tune"),
    _step(f"admin tune judged.jsonl --profile words --to mine.json {_TALKS}", "tune-to"),
    _step(f"admin tune judged.jsonl --to mine.json {_TALKS}", "tune-taken", 5),
    _step(f"admin tune judged.jsonl --profile mine.json {_TALKS}", "tune-again", 1),
    _step(
        f"admin tune judged.jsonl --profile mine.json --to again.json --anyway {_TALKS}",
        "tune-anyway",
    ),
    _step(f"admin tune misjudged.jsonl {_TALKS}", "tune-missing", 6),
    _step(f"admin tune few.jsonl {_TALKS}", "tune-few", 2),
    _step(f"admin tune --recalls {_TALKS}", "tune-recalls", 2),
    _step(f"admin tune {_TALKS}", "tune-refused", 2),
    _step(f"search mill --profile mine.json -k 2 {_TALKS}", "search-tuned"),
    _step(f"search mill --profile judged.jsonl.json {_TALKS}", "search-profile-missing", 6),
    _step("admin completion bash", "completion"),
    _step(
        "put 'Lanes for bicycles too?' --kind message --role Anna --track chat"
        f" --date 2026-05-01 {_NEW}",
        "put-turn",
    ),
    _step(f"recall 'four lanes' {_NEW}", "recall-turns"),
    _step(f"agents runs {_NEW}", "runs-nothing"),
    _survey,
    _step("agents runs -f survey.memory", "runs"),
    _step("agents runs s-1 -f survey.memory", "runs-calls"),
    _step("agents runs s-2 -f survey.memory", "runs-missing", 6),
    _step("agents runs s-1 surveyor:survey --again -f survey.memory", "rerun"),
    _step("agents runs s-1 surveyor:hurried --again -f survey.memory", "rerun-differs", 1),
    _step("agents runs s-1 surveyor:no_such --again -f survey.memory", "rerun-missing", 6),
    _step(f"time fork try-it --at 3 {_NEW}", "fork"),
    _step(f"time fork --compare try-it {_NEW}", "fork-compare"),
    _step(f"time fork --apply try-it {_NEW}", "fork-apply"),
    _step(f"time fork {_NEW}", "fork-usage", 2),
    _step(f"time explain --again --with policy.toml --compare {_THIS}", "rerun-compare"),
    _step(f"time explain --again --with few.jsonl --compare {_THIS}", "rerun-compare-refused", 2),
    _step(f"time explain 35 --again {_THIS}", "rerun-recall"),
    _step(f"time explain 1 --again {_THIS}", "rerun-recall-missing", 6),
    _step(f"time explain --again --with small.toml --compare {_THIS}", "rerun-chunking"),
    _step(
        f"time explain --again --with Kinds.toml --with Words.toml --compare {_THIS}",
        "rerun-projection",
    ),
    _step(f"time explain --again --with Words.toml --compare {_THIS}", "rerun-projection-alone", 2),
    _step(f"time history 20 {_THIS}", "history-fact"),
    _step(f"time history bridge {_THIS}", "history-entity"),
    _step(f"time history --by-field bridge {_THIS}", "blame-entity"),
    _step(f"time history --by-field 30 {_THIS}", "blame-link"),
    _step(f"time explain 35 {_THIS}", "explain-recall"),
    _step(f"time explain 1 {_THIS}", "explain-missing", 6),
    _step(f"time follow --after 0 --type put --timeout 0 -n 3 {_THIS}", "follow"),
    _step(f"time follow --after 9999 --timeout 0 {_THIS}", "follow-missing", 6),
    _step(f"time diff 8 10 --html diff.html {_THIS}", "diff-html"),
    _step(f"log --who --actor ben --html audit.html {_THIS}", "audit-html"),
    _step(
        f"time bisect --query bridge --forbid may --bad 8 --html bisect.html {_THIS}", "bisect-html"
    ),
    _step(f"file export events.jsonl.zst --events {_THIS}", "export-events"),
    _step("file import events.jsonl.zst -f exact.memory", "import-events"),
    _step("file import events.jsonl.zst -f survey.memory", "import-events-other"),
    _step(f"file export --events --history {_THIS}", "export-refused", 2),
    _step(f"file compact --dry-run --horizon HEAD {_NEW}", "compact-dry-run"),
    _step(f"file compact --horizon HEAD {_NEW}", "compact-horizon"),
    _step(f"file compact {_NEW}", "compact"),
    _step(f"file maintain {_NEW}", "maintain"),
    _step(f"file maintain --budget 0 {_NEW}", "maintain-refused", 2),
    _declare_slots,
    _step(f"agents slots --declare memory.yaml --agent analyst {_ANALYST}", "slots-declare"),
    _step(f"agents slots --declare memory.yaml --agent analyst {_ANALYST}", "slots-declare-again"),
    _step(
        f"agents slots --declare wrong.yaml --agent analyst {_ANALYST}", "slots-declare-refused", 2
    ),
    _step(f"agents slots {_ANALYST}", "slots"),
    _step(f"agents slots --agent nobody {_ANALYST}", "slots-none"),
    _step(f'agents slots prefs risk --set {{"level":3}} {_ANALYST} {_USER}', "slot-set"),
    _step(f'agents slots prefs colour --set "green" {_ANALYST} {_USER}', "slot-set-text"),
    _step(f"agents slots prefs risk --set high {_ANALYST} {_USER}", "slot-set-refused", 2),
    _step(f"agents slots notes --append '\"prefers bonds\"' {_ANALYST} {_USER}", "slot-append"),
    _step(f"agents slots prefs {_ANALYST} {_USER}", "slot"),
    _step(f"agents slots prefs risk {_ANALYST} {_USER}", "slot-key"),
    _step(f"agents slots prefs rsk {_ANALYST} {_USER}", "slot-key-missing", 6),
    _step(f"agents slots prefs {_ANALYST}", "slot-scope-missing", 2),
    _step(f"agents slots pref {_ANALYST} {_USER}", "slot-missing", 6),
    _step(f"agents slots notes --search bonds {_ANALYST} {_USER}", "slot-search"),
    _step(f"agents slots prefs --delete risk --history {_ANALYST} {_USER}", "slot-two-acts", 2),
    _step(f"agents slots prefs --delete risk {_ANALYST} {_USER}", "slot-delete"),
    _step(f"agents slots prefs --history {_ANALYST} {_USER}", "slot-history"),
    _leave_run,
    _step(f"agents refs r-1 {_ANALYST}", "refs-ended"),
    _step(f"agents refs r-2 {_ANALYST}", "refs"),
    _step(f"agents refs r-3 {_ANALYST}", "refs-missing", 6),
    _step(f"agents refs r-2 $ref:market.fetch.1 {_ANALYST}", "ref"),
    _step(f"agents refs r-2 $ref:market.fetch.1#/AAPL/1 {_ANALYST}", "ref-part"),
    _step(f"agents refs r-2 $ref:market.fetch.2 {_ANALYST}", "ref-missing", 6),
    _step(f"agents refs r-2 market.fetch {_ANALYST}", "ref-refused", 2),
    _step(f"admin mcp --print-config claude-code --read-only {_NEW}", "mcp-claude-code"),
    _step(f"admin mcp --print-config vscode --scope user=anna --actor ben {_NEW}", "mcp-vscode"),
    _step(f"admin mcp --record --read-only {_NEW}", "mcp-refused", 2),
    _step(f"agents proposals {_NEW}", "proposals-none"),
    _propose,
    _step(f"agents proposals {_WYATT}", "proposals"),
    _step(f"agents judge approve 1 --actor anna {_WYATT}", "approve"),
    _step(f"agents judge approve 1 --actor ben {_WYATT}", "approve-again"),
    _step(f"agents judge approve 2 --actor anna {_WYATT}", "approve-refused", 5),
    _step(f"agents judge approve 2 {_WYATT}", "approve-usage", 2),
    _step(f"agents judge reject 2 --actor anna {_WYATT}", "reject"),
    _step(f"agents judge revoke 1 --actor anna {_WYATT}", "revoke"),
    _step(f"agents judge revoke 9 --actor anna {_WYATT}", "revoke-missing", 6),
    _step(f"agents proposals --agent wyatt {_WYATT}", "proposals-judged"),
    _leave_records,
    _step(f"file import --from jsonl records.jsonl --dry-run {_NEW}", "import-dry-run", 1),
    _step(f"file import --from jsonl good.jsonl {_NEW}", "import-records"),
    _step(f"file import --from jsonl good.jsonl {_NEW}", "import-records-again"),
    _step(f"file import --from jsonl records.jsonl {_NEW}", "import-refused", 1),
    _talk,
    _step(f"agents talk {_TALK}", "sessions"),
    _step(f"agents talk --agent wyat {_TALK}", "sessions-missing", 6),
    _step(f"agents talk --show threads {_TALK}", "threads"),
    _step(f"agents talk --show topics --thread taxes {_TALK}", "topics"),
    _step(f"agents talk --show topics --thread '' {_TALK}", "topics-refused", 2),
    _step(f"agents talk --show standing {_TALK}", "standing"),
    _step(f"agents talk --show handoff --thread taxes {_TALK}", "handoff"),
    _step(f"agents talk --show handoff {_TALK}", "handoff-nothing"),
    _step("agents talk --show handoff -f memory.cera", "handoff-no-agent", 6),
    _step(f"agents talk --show summaries --thread taxes {_TALK}", "summaries-none"),
    _step(f"agents reflect --dry-run {_TALK}", "reflect-dry"),
    _step(f"agents reflect --limit 2 {_TALK}", "reflect-limit"),
    _step(f"agents reflect {_TALK}", "reflect"),
    _step(f"agents reflect {_TALK}", "reflect-again"),
    _step(f"agents talk --show summaries --thread taxes {_TALK}", "summaries"),
    _step(f"file export --archive days --agent wyatt {_TALK}", "export-archive"),
    _step(f"file export --archive days {_TALK}", "export-archive-again"),
    _step(f"file export --archive days --history {_TALK}", "export-archive-refused", 2),
    _step(f"agents assemble deadline? --thread taxes --timezone Europe/Rome {_TALK}", "assemble"),
    _step(f"agents assemble Why? --session s-3 --max-tokens 300 {_TALK}", "assemble-session"),
    _step(f"agents assemble Why? --session s-9 {_TALK}", "assemble-missing", 6),
    _step(f"agents reflect --model no_such:Model {_TALK}", "reflect-no-model", 6),
)


@dataclass(frozen=True)
class Answer:
    """What a step printed, and how it ended."""

    step: Step
    code: int
    out: str
    err: str

    def text(self) -> str:
        """Return the answer as its golden file has it."""
        line = " ".join(["$ cerata", *(_quoted(word) for word in self.step.arguments)])
        err = "".join(f"! {one}\n" for one in self.err.splitlines())
        end = f"[exit code {self.code}]\n" if self.code else ""
        return f"{line}\n{self.out}{err}{end}"


def _quoted(word: str) -> str:
    return f"'{word}'" if " " in word else word


def tell(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    seed: int,
    *more: str,
    without: Collection[str] = (),
) -> Iterator[Answer]:
    """Run the story in a folder, ``more`` given to every command, and yield each answer.

    ``without`` has verbs whose steps are left out.
    """
    notes = folder / "notes"
    notes.mkdir()
    (notes / "bridge.md").write_text(DOCUMENT)
    (notes / "food.txt").write_text("Lunch is soup.\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    (notes / ".git").mkdir()
    clock, random = StandingClock(START_US), Random(seed)
    environment = Environment(clock=clock, random_bytes=random.randbytes)
    for step in STORY:
        if not isinstance(step, Step):
            step(folder, environment)
            continue
        if step.verb in without:
            continue
        code = main([*step.arguments, *more], environment)
        said = capsys.readouterr()
        yield Answer(step, code, said.out, said.err)
        # It stands still during a command.
        clock.time_us += 60_000_000


def steady(text: str) -> str:
    """Return a text with what no seed can fix made the same: measured times, sizes, places."""
    text = re.sub(r"\b\d+(\.\d+)? (KiB|MiB|B)\b", "N KiB", text)
    text = re.sub(r"\b\d+\.\d+ s\b", "N s", text)
    text = re.sub(r"offset [\d,]+", "offset N", text)
    # What a projection's version and digest are is its own room's to change.
    text = re.sub(r"\b(frames|fulltext|facts|links|tags)/\d+", r"\1/N", text)
    text = re.sub(r"\b[0-9a-f]{30,}…", "DIGEST…", text)
    # The whole path of a file is in its event, and so in the hashes of the log.
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    return text.replace(sys.executable, "python")
