# The packages are in an environment of their own; elsewhere their types are unknown.
# pyright: basic, reportMissingImports=false
"""Files of other memories, written by their own packages: python make_sources.py FOLDER [KIND]….

Five files of each kind, compressed. mem0 and Graphiti call a model before they store, so their own
storage classes and models are used directly: `SQLiteManager`, `EntityNode` and `EntityEdge`. The
files in ``sources/`` are of the versions in the extra ``sources``; CI writes new ones and tests
these too.
"""

import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 11, 1, 9, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


# --- mem0 ----------------------------------------------------------------------------------------


def mem0(folder: Path) -> None:
    from mem0.memory.storage import SQLiteManager

    def write(name: str, rows: list[tuple[str, str, str | None, int]], **more: Any) -> None:
        storage = SQLiteManager(str(folder / name))
        texts: dict[str, str] = {}
        for action, memory, text, number in rows:
            old = texts.get(memory)
            storage.add_history(
                memory,
                old,
                text,
                action,
                created_at=day(0).isoformat(),
                updated_at=day(number).isoformat() if action == "UPDATE" else None,
                is_deleted=int(action == "DELETE"),
                **more,
            )
            texts[memory] = text or ""
        storage.close()

    index = ("ADD", "m1", "The index is Annoy.", 0)
    write("mem0-1.db", [index, ("ADD", "m2", "Anna lives in Rome.", 0)])
    write(
        "mem0-2.db",
        [
            index,
            ("UPDATE", "m1", "The index is HNSW.", 1),
            ("UPDATE", "m1", "The index is flat.", 2),
        ],
    )
    write("mem0-3.db", [index, ("ADD", "m2", "Lunch is at noon.", 0), ("DELETE", "m1", None, 1)])
    write("mem0-4.db", [("ADD", "é✓", "Das Brötchen kostet 2 €.", 0)], actor_id="anna", role="user")
    storage = SQLiteManager(str(folder / "mem0-5.db"))
    storage.batch_add_history(
        [
            {
                "memory_id": f"m{number % 400}",
                "new_memory": f"Reading {number} of sensor {number % 400}.",
                "event": "ADD" if number < 400 else "UPDATE",
                "created_at": day(0).isoformat(),
                "updated_at": day(1).isoformat() if number >= 400 else None,
            }
            for number in range(700)
        ]
    )
    storage.close()


# --- LangGraph -----------------------------------------------------------------------------------


def langgraph(folder: Path) -> None:
    import operator
    from typing import Annotated

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START as BEGIN
    from langgraph.graph import StateGraph
    from langgraph.store.sqlite import SqliteStore
    from langgraph.types import Command, interrupt
    from typing_extensions import TypedDict

    class State(TypedDict):
        lines: Annotated[list[Any], operator.add]

    def fail(_: State) -> State:
        raise ValueError("refused")

    def graph(**nodes: Callable[[State], State]) -> StateGraph:
        made = StateGraph(State)
        before = BEGIN
        for name, node in nodes.items():
            made.add_node(name, node)
            made.add_edge(before, name)
            before = name
        return made

    def reply(state: State) -> State:
        return {"lines": [f"reply {len(state['lines'])}"]}

    def ask(_: State) -> State:
        return {"lines": [interrupt("Which city?")]}

    def config(thread: str) -> Any:
        return {"configurable": {"thread_id": thread}}

    with SqliteSaver.from_conn_string(str(folder / "langgraph-sqlite-1.db")) as saver:
        app = graph(reply=reply).compile(checkpointer=saver)
        for thread in ("anna", "ben"):
            app.invoke({"lines": ["hello"]}, config(thread))
    with SqliteSaver.from_conn_string(str(folder / "langgraph-sqlite-2.db")) as saver:
        app = graph(reply=reply, ask=ask).compile(checkpointer=saver)
        for thread in ("anna", "ben"):
            app.invoke({"lines": ["hello"]}, config(thread))
        app.invoke(Command(resume="Rome"), config("anna"))
    with SqliteStore.from_conn_string(str(folder / "langgraph-sqlite-3.db")) as store:
        store.setup()
        store.put(("users", "anna"), "prefs", {"theme": "dark", "sizes": [1, 2.5], "x": None})
        store.put(("users", "anna"), "a/b%c", {"text": "Die Brücke öffnet."})
        store.put(("users",), "once", {"text": "gone"})
        store.delete(("users",), "once")
    path = str(folder / "langgraph-sqlite-4.db")
    with SqliteSaver.from_conn_string(path) as saver:
        app = graph(reply=reply, fail=fail).compile(checkpointer=saver)
        with suppress(ValueError):
            app.invoke({"lines": ["hello"]}, config("anna"))
    with SqliteStore.from_conn_string(path) as store:
        store.setup()
        store.put(("users", "anna"), "prefs", {"theme": "light"}, ttl=60 * 24 * 36_500)
        store.put(("users", "anna"), "old", {"theme": "light"}, ttl=1 / 600_000)
    with SqliteSaver.from_conn_string(str(folder / "langgraph-sqlite-5.db")) as saver:
        app = graph(reply=reply, again=reply).compile(checkpointer=saver)
        for turn in range(12):
            app.invoke({"lines": [f"turn {turn} " + "word " * 300]}, config("anna"))


# --- Chroma --------------------------------------------------------------------------------------


def chroma(folder: Path) -> None:
    import chromadb

    def client(number: int) -> Any:
        return chromadb.PersistentClient(path=str(folder / str(number)))

    def add(collection: Any, *texts: str, **more: Any) -> None:
        ids = [f"id{number}" for number in range(len(texts))]
        # Vectors are given, since Chroma's default embedder downloads a model.
        vectors = [[1.0, float(number)] for number in range(len(texts))]
        collection.upsert(ids=ids, documents=[*texts], embeddings=vectors, **more)

    def collection(made: Any, name: str) -> Any:
        return made.get_or_create_collection(name, embedding_function=None)

    add(collection(client(1), "notes"), "The index is HNSW.", "Anna lives in Rome.")
    metadatas = [{"page": 1, "rate": 1.5, "is_new": True, "by": "é"}, {"tags": ["a", "b"]}]
    add(collection(client(2), "notes"), "one", "two", metadatas=metadatas)
    third = client(3)
    for name in ("notes", "letters"):
        add(collection(third, name), f"first of {name}", f"second of {name}")
    collection(third, "letters").add(ids=["bare"], embeddings=[[0.0, 1.0]])
    fourth = collection(client(4), "notes")
    add(fourth, "old", "gone", "kept")
    add(fourth, "new")
    fourth.delete(ids=["id1"])
    add(collection(client(5), "many"), *(f"Reading {number}." for number in range(600)))
    for number in range(1, 6):
        # The tables alone: the files of the index hold only vectors.
        (folder / str(number) / "chroma.sqlite3").rename(folder / f"chroma-{number}.sqlite3")


# --- Graphiti ------------------------------------------------------------------------------------


def graphiti(folder: Path) -> None:
    from graphiti_core.edges import EntityEdge
    from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode

    names = ("Anna", "Rome", "Paris", "Acme")
    nodes = {
        name: EntityNode(
            name=name, group_id="g", labels=["Entity"], created_at=day(0), summary=summary
        )
        for name, summary in zip(names, ("Anna is an engineer.", "", "", "Ä firm."), strict=True)
    }

    def edge(source: str, name: str, target: str, **more: Any) -> EntityEdge:
        return EntityEdge(
            group_id="g",
            source_node_uuid=nodes[source].uuid,
            target_node_uuid=nodes[target].uuid,
            created_at=day(0),
            name=name,
            fact=f"{source} {name.lower().replace('_', ' ')} {target}.",
            **more,
        )

    def write(number: int, *records: Any) -> None:
        lines = [record.model_dump_json() + "\n" for record in records]
        (folder / f"graphiti-{number}.jsonl").write_text("".join(lines), encoding="utf-8")

    rome = edge("Anna", "LIVES_IN", "Rome", valid_at=day(-900), invalid_at=day(-30))
    paris = edge("Anna", "LIVES_IN", "Paris", valid_at=day(-30))
    every = [*nodes.values()]
    write(1, *every, rome, paris)
    # Edges may precede their nodes.
    write(2, edge("Anna", "WORKS_AT", "Acme", episodes=["e1"]), *every)
    expired = rome.model_copy(update={"uuid": "expired", "expired_at": day(0)})
    write(3, *every, expired, paris)
    episode = EpisodicNode(
        name="chat",
        group_id="g",
        created_at=day(0),
        valid_at=day(0),
        source=EpisodeType.message,
        source_description="a chat",
        content="Anna: I moved.",
    )
    empty = edge("Anna", "VISITS", "Rome", valid_at=day(1), invalid_at=day(1))
    write(4, episode, *every, paris, empty)
    many = [
        edge("Acme", f"HAS_{number}", "Rome", attributes={"n": number}, fact_embedding=[0.5])
        for number in range(120)
    ]
    write(5, *every, *many)


MAKERS: dict[str, Callable[[Path], None]] = {
    "chroma": chroma,
    "graphiti": graphiti,
    "mem0": mem0,
    "langgraph-sqlite": langgraph,
}


def main(folder: Path, kinds: list[str]) -> None:
    import zstandard

    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds or MAKERS:
        with tempfile.TemporaryDirectory() as made:
            MAKERS[kind](Path(made))
            for path in sorted(Path(made).glob(f"{kind}-?.*")):
                data = zstandard.compress(path.read_bytes(), 19)
                (folder / f"{path.name}.zst").write_bytes(data)
                print(f"{path.name}: {len(data):,} bytes")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
