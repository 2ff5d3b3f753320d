"""The table of owners: every kind and event against every write of every role.

The expectation of each case comes from the table alone. A kind, an event type, a write of a store,
a tool or an integration that no table here or there names fails a test.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

import cerata
from cerata import Filter, Store
from cerata.engine.events import (
    Attachment,
    DeleteFrame,
    Draft,
    Embedding,
    EventBody,
    JsonValue,
    PutEmbedding,
    PutFrame,
    SupersedeFrame,
)
from cerata.engine.integrity import hash_bytes
from cerata.engine.packs import Owned, Role, packs
from cerata.integrations.anthropic import pack as anthropic
from cerata.integrations.frames_of_scope import FramesOfScope
from cerata.integrations.google_adk import pack as google_adk
from cerata.integrations.importers import import_from, kinds
from cerata.integrations.langchain import pack as langchain
from cerata.integrations.langgraph import pack as langgraph
from cerata.integrations.mcp.service import Service
from cerata.integrations.openai_agents import pack as openai_agents
from cerata.memory.batch.writer import acting, session_of
from cerata.memory.values.owners import (
    FREE_EVENTS,
    FREE_KINDS,
    owner_of_event,
    owners_of_frame,
    table,
)

from ...kinds import cerata_kinds
from ...surface import surface

ROLES: Final = [
    *(role for role in vars(Role).values() if isinstance(role, Role)),
    *(pack.role for pack in packs() if pack.role is not None),
]

ROOMS: Final = ("agents", "integrations", "memory")

OWNED: Final = [
    *((kind, None) for owned in table() for kind in owned.kinds),
    *(("text", f"{uri}x") for owned in table() for uri in owned.uris),
]
"""A kind and a URI for each kind and start of a URI in the table."""

INTEGRATIONS: Final[Mapping[str, Role | None]] = {
    "anthropic": anthropic.ROLE,
    "google_adk": google_adk.ROLE,
    "importers": Role.IMPORTER,
    "langchain": langchain.ROLE,
    "langgraph": langgraph.ROLE,
    "mcp": Role.TOOL,
    "openai_agents": openai_agents.ROLE,
    # Spans of the caller's own writes.
    "otel": None,
}


def owner_of_frame(kind: str, uri: str | None) -> Owned | None:
    return next(owners_of_frame(kind, uri), None)


@pytest.fixture
def store() -> Iterator[Store]:
    with cerata.open(":memory:") as opened:
        yield opened
        assert opened.verify().ok


def owned_frame(
    store: Store,
    kind: str,
    uri: str | None,
    *,
    parent: int | None = None,
    metadata: dict[str, JsonValue] | None = None,
) -> int:
    options = cerata.PutOptions(parent=parent)
    receipt = store.put_frame(
        "The owner wrote it.", kind=kind, uri=uri, metadata=metadata, options=options
    )
    return receipt.id


# --- the table is whole --------------------------------------------------------------------------


def modules(checkout: Path) -> list[ast.Module]:
    paths = [path for room in ROOMS for path in sorted((checkout / room).rglob("*.py"))]
    return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def constants(module: ast.Module) -> dict[str, str]:
    """Return the string constants of a module by name."""
    return {
        node.target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def written_kinds(checkout: Path) -> set[str]:
    """Return the kinds that the code of the rooms gives to frames, imported constants by name."""
    found = modules(checkout)
    by_name: dict[str, set[str]] = {}
    for module in found:
        for name, value in constants(module).items():
            by_name.setdefault(name, set()).add(value)
    kinds = set[str]()
    for module in found:
        own = constants(module)
        calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
        for kind in filter(None, map(kind_of, calls)):
            if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                kinds.add(kind.value)
            else:
                name = getattr(kind, "attr", getattr(kind, "id", ""))
                kinds |= {own[name]} if name in own else by_name.get(name, set())
    return kinds


def kind_of(call: ast.Call) -> ast.expr | None:
    """Return the kind that a call gives to a frame."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "FramesOfScope":
        return call.args[1]
    if name not in ("frame_fields", "put_frame", "put_frames", "remember", "draft_of", "PutFrame"):
        return None
    return next((each.value for each in call.keywords if each.arg == "kind"), None)


def test_each_kind_that_the_code_writes_is_in_the_table(checkout: Path) -> None:
    """A new kind is free for tools only if a person decided so."""
    kinds = written_kinds(checkout)
    assert kinds >= {kind for row in table() for kind in row.kinds} - {"identity"}
    unlisted = {kind for kind in kinds if owner_of_frame(kind, None) is None} - {*FREE_KINDS}
    assert unlisted == set()


def test_each_event_type_is_in_the_table_once() -> None:
    """A new event type is refused to every role but programs until it is listed."""
    owned = [event for row in table() for event in row.events]
    assert len(owned) == len({*owned})
    assert not FREE_EVENTS & {*owned}
    assert {body.wire_name for body in cerata_kinds()} == FREE_EVENTS | {*owned}


def test_each_integration_has_a_role(checkout: Path) -> None:
    """A new integration takes a handle of a role."""
    folders = {path.parent.name for path in (checkout / "integrations").glob("*/__init__.py")}
    assert folders == {*INTEGRATIONS}
    for folder, role in INTEGRATIONS.items():
        text = "".join(
            path.read_text(encoding="utf-8")
            for path in (checkout / "integrations" / folder).glob("*.py")
        )
        assert role is None or name_of(role) in text, folder


def name_of(role: Role) -> str:
    """Return the name by which code takes a role: that of its pack is `ROLE`."""
    names = [name for name, value in vars(Role).items() if value is role]
    return f"Role.{names[0]}" if names else "ROLE"


# --- every event ---------------------------------------------------------------------------------


def sample(kind: type[EventBody]) -> EventBody:
    """Return a body with a value for each required field; rules may refuse it."""
    values: dict[str, Any] = {"int": 1, "str": "x", "bytes": b"x" * 32, "bool": False, "float": 1.0}
    fields = {
        field.name: values.get(getattr(field.type, "__name__", ""), ())
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    return kind(**fields)


@pytest.mark.parametrize("role", ROLES, ids=repr)
def test_a_role_writes_the_events_that_the_table_gives_it(store: Store, role: Role) -> None:
    """Whatever other rules say of the event, the table alone raises `Refused`."""
    writer = acting(store, role)
    for kind in cerata_kinds():
        owned = owner_of_event(kind.wire_name)
        may = kind.wire_name in FREE_EVENTS if owned is None else owned.admits(role)
        head = store.head
        error = refusal(writer, sample(kind))
        if may or kind.wire_name in ("branch", "erase"):
            assert not isinstance(error, cerata.Refused), (role, kind)
            continue
        assert isinstance(error, cerata.Refused), (role, kind)
        assert error.exit_code == 22
        assert "Agent.propose()" in str(error.remedy)
        assert store.head == head


def refusal(store: Store, body: EventBody) -> cerata.CerataError | None:
    try:
        store.append(body)
    except cerata.CerataError as error:
        return error
    return None


class Spending(EventBody, frozen=True):
    cents: int


def test_an_event_of_a_program_is_no_business_of_a_tool(store: Store) -> None:
    """An unlisted type is refused to every role, and a program writes it."""
    body = cerata.event("testSpending")(Spending)(cents=3)
    for role in ROLES:
        if role not in (Role.PROGRAM, Role.COPY):
            with pytest.raises(cerata.Refused):
                acting(store, role).append(body)
    assert store.append(body).added


# --- every write of a store on every kind --------------------------------------------------------


def put_vector(store: Store, frame: int) -> None:
    data = b"\0\0\x80?"
    embedding = Embedding("s", "f4", 1, Attachment(hash_bytes(data), len(data)))
    store.append(Draft(PutEmbedding(frame=frame, embedding=embedding), attachments=(data,)))


def by_transaction(store: Store, frame: int) -> None:
    with store.transaction():
        new = store.put_frame("A tool wrote it.")
        store.supersede(frame, new)


def below_new(store: Store, frame: int) -> None:
    with store.transaction():
        child = store.put_frame("A tool wrote it.", options=cerata.PutOptions(parent=frame))
        store.put_frame("A tool wrote it.", options=cerata.PutOptions(parent=child))


CHANGES: Final[Mapping[str, Callable[[Store, int], object]]] = {
    "supersede": lambda store, frame: store.supersede(frame, "A tool wrote it."),
    "supersede by a frame": lambda store, frame: store.supersede(
        frame, store.put_frame("A tool wrote it.")
    ),
    "supersede a free frame by it": lambda store, frame: store.supersede(
        store.put_frame("A tool wrote it."), frame
    ),
    "supersede in a transaction": by_transaction,
    "delete": lambda store, frame: store.delete(frame),
    "delete by a filter": lambda store, _: store.delete(where=Filter(metadata={"owner": "him"})),
    "update": lambda store, frame: store.update(frame, title="A tool wrote it."),
    "put below": lambda store, frame: store.put_frame(
        "A tool wrote it.", options=cerata.PutOptions(parent=frame)
    ),
    "put below, deeper": below_new,
    "put a vector": put_vector,
    "append a deletion": lambda store, frame: store.append(DeleteFrame(frame=frame)),
    "append a supersede": lambda store, frame: store.append(
        PutFrame(text="A tool wrote it."), SupersedeFrame(old=frame, new=-1)
    ),
}

WRITES: Final[Mapping[str, tuple[str, ...]]] = {
    "append": ("append a deletion", "append a supersede", "put a vector"),
    "delete": ("delete", "delete by a filter"),
    "put_frame": ("put below", "put below, deeper", "kind"),
    "put_frames": ("kind",),
    "remember": ("kind", "uri"),
    "files.remember": ("files",),
    "history.restore": ("restored",),
    "supersede": ("supersede", "supersede by a frame"),
    "transaction": ("supersede in a transaction",),
    "update": ("update",),
    "interchange.import_events": ("events",),
    "upkeep.fork": ("fork",),
    # Verdicts are events of the table; these calls write only free events, or only a role's own.
    **dict.fromkeys(
        (
            *("upkeep.apply", "assert_fact", "graph.assert_many", "correct_fact", "retract_fact"),
            *(
                "graph.retract_many",
                "graph.declare",
                "embeddings.fill",
                "graph.extract",
                "interchange.import_facts",
            ),
            *(
                "graph.link",
                "graph.unlink",
                "graph.merge",
                "graph.unmerge",
                "graph.split",
                "graph.unsplit",
            ),
            *("graph.name", "record_access", "remember_messages", "upkeep.sweep", "history.tag"),
        ),
        (),
    ),
}
"""The cases of this file for each call of a store that writes events."""

READS: Final = {
    *(
        "actor",
        "backup",
        "history.bisect",
        "upkeep.branches",
        "checkpoint",
        "close",
        "stream.commit",
        "upkeep.compact",
    ),
    *(
        "history.compare",
        "diff",
        "stream.digests",
        "upkeep.drafts_after",
        "embeddings.embedder",
        "interchange.export_events",
        "stream.follow",
        "upkeep.info",
    ),
    *(
        "upkeep.maintain",
        "path",
        "upkeep.rebuild",
        "stream.refresh",
        "stream.replay",
        "report",
        "history.salvaged",
        "scoped",
        "verify",
    ),
}
"""The calls that append nothing, or close nothing: `maintain` sweeps as `sweep` does."""


def test_each_write_of_a_store_has_its_cases() -> None:
    """A new call that writes comes with cases, or a decision."""
    of_growth = {"judge"}  # tests/agents/growth has its cases
    assert surface(Store) - surface(cerata.View) - of_growth == {*WRITES, *READS}
    assert {case for cases in WRITES.values() for case in cases} >= {
        name for name in CHANGES if "free frame" not in name
    }


@pytest.mark.parametrize(("kind", "uri"), OWNED)
@pytest.mark.parametrize("change", CHANGES)
def test_a_role_changes_the_frames_that_the_table_gives_it(
    store: Store, change: str, kind: str, uri: str | None
) -> None:
    """Refused, with nothing written, or done."""
    owned = owner_of_frame(kind, uri)
    assert owned is not None
    for role in ROLES:
        frame = owned_frame(store, kind, uri, metadata={"owner": "him"})
        head = store.head.seq
        writer = acting(store, role)
        if owned.admits(role):
            CHANGES[change](writer, frame)
            assert store.head.seq > head
        else:
            with pytest.raises(cerata.Refused, match=owned.name):
                CHANGES[change](writer, frame)
            assert store.frame(frame).active
            assert store.frame(frame).supersedes == ()
            # Only a frame that the case itself wrote before.
            assert store.head.seq <= head + ("frame" in change)
        for each in list(store.frames()):
            store.delete(each)


@pytest.mark.parametrize(("kind", "uri"), OWNED)
def test_a_role_puts_the_frames_that_the_table_gives_it(
    store: Store, kind: str, uri: str | None
) -> None:
    """By kind, by the start of the URI, and in place of the owner's frame by its URI."""
    owned = owner_of_frame(kind, uri)
    assert owned is not None
    puts: list[Callable[[Store], object]] = [
        lambda writer: writer.put_frame("new", kind=kind, uri=uri),
        lambda writer: writer.put_frames(["new"], kind=kind) if uri is None else refuse(uri),
        lambda writer: writer.remember("new", kind=kind, uri=uri),
        lambda writer: writer.remember("word " * 2_000, kind=kind, uri=uri),
        lambda writer: writer.put_frame("new", uri=taken),
        lambda writer: writer.put_frame("new", uri=taken, options=cerata.PutOptions(replace=True)),
        lambda writer: writer.remember("newer", uri=taken),
    ]

    def refuse(_: str) -> None:
        raise cerata.Refused(owned.name if owned else "", remedy="This call takes no URI.")

    for role in ROLES:
        taken = f"{uri}/taken" if uri else "note:taken"
        holder = owned_frame(store, kind, taken)
        for number, put in enumerate(puts):
            head = store.head
            if owned.admits(role) and not (number == 1 and uri):
                put(acting(store, role))
            else:
                with pytest.raises(cerata.Refused, match=owned.name):
                    put(acting(store, role))
                assert store.head == head
        if not owned.admits(role):
            assert store.get(taken) == store.frame(holder)
        for each in list(store.frames()):
            store.delete(each)


@pytest.mark.parametrize(("kind", "uri"), OWNED)
def test_an_owned_frame_protects_the_frames_around_it(
    store: Store, kind: str, uri: str | None
) -> None:
    """Its chunks are its own, and a free frame above it cannot be closed with it."""
    text = "\n\n".join(f"Line {number}. " + "word " * 300 for number in range(6))
    document = store.remember(text, kind=kind, uri=uri or "doc:1").id
    above = store.put_frame("A folder.").id
    between = store.put_frame("A part.", options=cerata.PutOptions(parent=above)).id
    below = owned_frame(store, kind, uri, parent=between)
    tool = acting(store, Role.TOOL)
    head = store.head
    for chunk in store.files.chunks(document).values():
        with pytest.raises(cerata.Refused):
            tool.delete(chunk)
        with pytest.raises(cerata.Refused):
            tool.supersede(chunk, "A tool wrote it.")
    for frame in (document, above, between):
        with pytest.raises(cerata.Refused):
            tool.delete(frame)
        with pytest.raises(cerata.Refused):
            tool.supersede(frame, "A tool wrote it.")
    assert store.head == head
    assert store.frame(below).active


@pytest.mark.parametrize(("kind", "uri"), OWNED)
def test_a_closed_version_is_not_restored_by_a_tool(
    store: Store, kind: str, uri: str | None
) -> None:
    """Restored, an older text would take the place of the current text."""
    old = owned_frame(store, kind, uri)
    new = store.supersede(old, "The owner corrected it.").id
    with pytest.raises(cerata.Refused):
        acting(store, Role.TOOL).history.restore(old)
    assert store.frame(new).active


def test_free_frames_are_free_for_all(store: Store) -> None:
    """The table takes nothing from a tool but owned things; kinds of programs are free."""
    for role in ROLES:
        writer = acting(store, role)
        for kind in (*FREE_KINDS, "a program's kind"):
            frame = writer.put_frame("A note.", kind=kind, uri=f"note:{kind}")
            other = writer.supersede(frame, "A better note.")
            assert writer.delete(other).deleted == (other.id,)


def test_a_role_is_kept(store: Store) -> None:
    """By scopes, calls with an actor, forks and a second role: rights only shrink."""
    soul = owned_frame(store, "identity", "identity:SOUL")
    tool = acting(store, Role.TOOL)
    for each in (
        tool.scoped({"tenant": "default"}),
        acting(tool, langgraph.ROLE),
        acting(tool, Role.PROGRAM),
        tool.upkeep.fork(at=tool.head.seq),
        type(tool)(session_of(tool).correlated(lambda: "r1")),
    ):
        with pytest.raises(cerata.Refused):
            each.delete(soul, actor="anna")
    # A block of a program stays one, and a tool in it gets no rights.
    with store.transaction(), pytest.raises(cerata.Refused):
        tool.delete(soul)
    store.delete(soul)


def test_another_tenant_is_not_seen(store: Store) -> None:
    """An owned frame outside the scope is no frame: the refusal must not tell that it exists."""
    other = store.scoped({"tenant": "other"})
    soul = owned_frame(other, "identity", "identity:SOUL")
    tool = acting(store.scoped({"tenant": "mine"}), Role.TOOL)
    with pytest.raises(cerata.NotFound):
        tool.delete(soul)


# --- tools, importers and files ------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "uri"), OWNED)
def test_no_tool_of_mcp_changes_an_owned_frame(store: Store, kind: str, uri: str | None) -> None:
    """A model calls these without a person."""
    frame = owned_frame(store, kind, uri)
    server = Service(store)
    reading = [tool["name"] for tool in Service(store, is_read_only=True).tools]
    writing = [tool["name"] for tool in server.tools if tool["name"] not in reading]
    assert writing == ["remember", "assert_fact", "correct", "forget"]
    head = store.head
    for name, arguments in (
        ("correct", {"id": str(frame), "text": "A model wrote it."}),
        ("forget", {"ids": str(frame)}),
    ):
        answer = server.call(name, arguments)
        assert answer.is_error
        assert answer.text.startswith("error: Refused: A tool of a model cannot change")
        assert "remedy: Propose the change" in answer.text
        assert store.head == head
    assert not server.call("remember", {"text": "identity:SOUL"}).is_error


@pytest.mark.parametrize("role", [role for role in INTEGRATIONS.values() if role is not None])
def test_an_adapter_writes_its_own_items_alone(store: Store, role: Role) -> None:
    """Also with a kind or a prefix that its caller chose; the caller's own handle stays free."""
    for kind, uri in OWNED:
        owned = owner_of_frame(kind, uri)
        assert owned is not None
        frames = FramesOfScope(store, kind, role)
        item = {"content": "An adapter wrote it.", "uri": f"{uri or kind}/1"}
        head = store.head.seq
        if owned.admits(role):
            frames.put([item], "Pass another prefix.")
            frames.put([item | {"content": "Again."}], "Pass another prefix.")
            assert store.head.seq > head
        else:
            with pytest.raises(cerata.Refused, match=owned.name):
                frames.put([item], "Pass another prefix.")
            assert store.head.seq == head
        theirs = frames.of_scope.put_frame("The owner wrote it.", kind=kind, uri=f"{uri or kind}/2")
        if not owned.admits(role):
            with pytest.raises(cerata.Refused, match=owned.name):
                frames.store.delete(theirs)
            assert store.frame(theirs).active


@pytest.mark.parametrize("row", [row for row in table() if row.owner is not None and row.kinds])
def test_a_kind_of_its_own_opens_no_other_uri_or_parent(store: Store, row: Owned) -> None:
    """An adapter with a prefix that a caller chose writes its kind at the URI of another owner."""
    assert row.owner is not None
    writer, kind = acting(store, row.owner), row.kinds[0]
    held = owned_frame(store, "note", "note:1", parent=owned_frame(store, "identity", None))
    soul = owned_frame(store, "identity", "identity:SOUL")
    # A frame of two owners, which only a program writes, needs the right of both.
    both = owned_frame(store, kind, "identity:TOOLS")
    head = store.head
    puts: list[Callable[[], object]] = [
        lambda: writer.put_frame("new", kind=kind, uri="identity:SOUL"),
        lambda: writer.put_frame(
            "new", kind=kind, uri="identity:SOUL", options=cerata.PutOptions(replace=True)
        ),
        lambda: writer.put_frame(
            "new", kind=kind, uri="note:1", options=cerata.PutOptions(replace=True)
        ),
        lambda: writer.put_frame("new", kind=kind, options=cerata.PutOptions(parent=soul)),
        lambda: writer.remember("new", kind=kind, uri="identity:AGENTS"),
        lambda: writer.delete(both),
        lambda: writer.supersede(both, "new"),
    ]
    for put in puts:
        with pytest.raises(cerata.Refused, match="identity"):
            put()
        assert store.head == head
    assert store.get("identity:SOUL") == store.frame(soul)
    assert store.get("note:1") == store.frame(held)


@pytest.mark.parametrize(("kind", "uri"), OWNED)
def test_no_line_of_an_import_is_an_owned_frame(
    store: Store, tmp_path: Path, kind: str, uri: str | None
) -> None:
    """Neither by its kind nor by its URI; a dry run lists the line, and other lines come."""
    assert kinds() == ("jsonl", "chroma", "graphiti", "langgraph-sqlite", "mem0")
    holder = owned_frame(store, kind, uri or "note:1")
    lines = tmp_path / "lines.jsonl"
    forged = {"text": "An import wrote it.", "kind": kind, "uri": uri}
    lines.write_text(json.dumps(forged) + "\n", encoding="utf-8")
    taken = tmp_path / "taken.jsonl"
    taken.write_text(json.dumps({"text": "new", "uri": uri or "note:1"}) + "\n", encoding="utf-8")
    head = store.head
    for path in (lines, taken):
        with pytest.raises(cerata.Refused):
            import_from(store, "jsonl", path)
        assert store.head == head
    dry = import_from(store, "jsonl", lines, dry_run=True)
    assert (dry.added, dry.refused) == (0, 1)
    assert "An importer cannot write" in dry.problems[0].what
    assert store.frame(holder).active


def test_a_file_takes_no_owned_frame_with_its_uri(store: Store, tmp_path: Path) -> None:
    """The file is skipped with the reason, and the next file comes."""
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"# {name}\n\nText.\n", encoding="utf-8")
    held = owned_frame(store, "identity", (tmp_path / "a.md").as_posix())
    seen = store.files.remember([tmp_path])
    assert [(Path(file.path).name, file.outcome) for file in seen.files] == [
        ("a.md", "skipped"),
        ("b.md", "added"),
    ]
    assert "An importer cannot change" in (seen.files[0].why or "")
    assert store.frame(held).active


def test_an_import_of_events_takes_what_the_table_lets_it(store: Store, tmp_path: Path) -> None:
    """Identity stays that of the memory, counted; other kinds come with their history."""
    soul = owned_frame(store, "identity", "identity:SOUL")
    taken: dict[str, Owned] = {}
    with cerata.open(":memory:") as source:
        for kind, uri in OWNED:
            frame = owned_frame(source, kind, uri)
            source.supersede(frame, f"{kind} {uri}")
            owned = owner_of_frame(kind, uri)
            assert owned is not None
            taken[f"{kind} {uri}"] = owned
        source.remember("word " * 2_000, kind="identity", uri="identity:AGENTS")
        source.put_frame("A note.")
        source.interchange.export_events(tmp_path / "events.jsonl")
    result = store.interchange.import_events(tmp_path / "events.jsonl")
    texts = {frame.text for frame in store.frames() if frame.id != soul}
    assert texts == {"A note.", *(text for text, owned in taken.items() if owned.is_copied)}
    assert result.skipped["putFrame of identity"] >= 6
    assert [frame.id for frame in store.frames(Filter(kind="identity"))] == [soul]
    again = store.interchange.import_events(tmp_path / "events.jsonl")
    assert (again.added, again.skipped) == (0, result.skipped)
    with cerata.open(":memory:") as copy:
        # An empty memory becomes a copy of the log, identity and all.
        copy.interchange.import_events(tmp_path / "events.jsonl")
        assert copy.get("identity:SOUL") is None
        assert copy.get("identity:x") is not None


def test_a_frame_of_two_rows_is_copied_only_if_both_are(store: Store, tmp_path: Path) -> None:
    """An item of an adapter at the URI of SOUL is left out as SOUL is."""
    soul = owned_frame(store, "identity", "identity:SOUL")
    with cerata.open(":memory:") as source:
        source.put_frame("evil", kind="langgraph.item", uri="identity:SOUL")
        source.interchange.export_events(tmp_path / "events.jsonl")
    result = store.interchange.import_events(tmp_path / "events.jsonl")
    assert (result.added, result.skipped) == (0, {"putFrame of identity": 1})
    assert store.get("identity:SOUL") == store.frame(soul)


def test_a_continuation_of_the_log_is_for_programs(tmp_path: Path) -> None:
    """Its events are written as they are, whatever the table says, so a tool gets none."""
    with cerata.open(":memory:") as ours, cerata.open(":memory:") as theirs:
        ours.put_frame("A note.")
        ours.interchange.export_events(tmp_path / "ours.jsonl")
        theirs.interchange.import_events(tmp_path / "ours.jsonl")
        owned_frame(theirs, "identity", "identity:SOUL")
        theirs.interchange.export_events(tmp_path / "theirs.jsonl")
        for role in ROLES:
            if role in (Role.PROGRAM, Role.COPY):
                continue
            with cerata.open(":memory:") as empty:
                for store in (ours, empty):
                    head = store.head
                    with pytest.raises(cerata.Refused, match="cannot continue a log"):
                        acting(store, role).interchange.import_events(tmp_path / "theirs.jsonl")
                    assert store.head == head
        ours.interchange.import_events(tmp_path / "theirs.jsonl")
        assert ours.get("identity:SOUL") is not None
