# Where an extra is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""The writes of each adapter: how a case calls a method, and whether the answer is true.

Owns the tables of the public methods of each adapter, which write or only read. Leaves out the
states of a key, and the checks that all adapters share (`test_bad_ids`).
"""

import importlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import cerata
from cerata import Store

DEFAULT: Final = {"tenant": "default"}
KEY: Final = "key"

Call = Callable[..., Any]
"""Calls a method of an adapter by its name, or its async twin, and returns the answer."""

Write = Callable[[Call, Any], Any]
"""Calls methods of an adapter for a key, and returns the answer."""

Check = Callable[[Any, Any, Any], bool]
"""Whether the answer of a write is true, by the texts of the key before and after it."""


class Adapter(NamedTuple):
    """A class of an integration, as its table of writes needs it.

    - ``make`` returns it over a store. ``kinds`` are the kinds of its frames, whose URI ``uri_of``
      returns for a key.
    - ``read`` returns the text of a key, or None; ``put`` writes a text.
    - ``writes`` have the name of a method, and after a comma the name of a case.
    """

    module: str
    needs: str
    mark: str
    make: Callable[[Any, Store], Any]
    uri_of: Callable[[str], str] | None
    kinds: set[str]
    scope: dict[str, Any]
    read: Callable[[Call, Any], Any]
    put: Callable[[Call, Any, str], Any]
    writes: Mapping[str, tuple[Write, Check]]
    reads: set[str]


def is_new(answer: Any, before: Any, after: Any) -> bool:
    del answer, before
    return bool(after == "new")


def is_gone(answer: Any, before: Any, after: Any) -> bool:
    del before
    return answer in (None, True) and after is None


def is_same(answer: Any, before: Any, after: Any) -> bool:
    del answer
    return bool(before == after)


def module_of(name: str) -> Any:
    return importlib.import_module(name)


# LangGraph's items.

SPACE: Final = ("users",)


def item_text(call: Call, key: Any) -> Any:
    item = call("get", SPACE, key)
    return None if item is None else item.value["text"]


def put_item(call: Call, key: Any, text: str) -> Any:
    return call("put", SPACE, key, {"text": text}, ttl=60)


def batch(call: Call, key: Any) -> Any:
    """A put of the key between others, which are all there or all absent."""
    op = module_of("langgraph.store.base").PutOp
    ops = [op(SPACE, name, {"text": "new"}) for name in ("first", key, "last")]
    try:
        answer = call("batch", ops)
    except cerata.CerataError:
        assert item_text(call, "first") is item_text(call, "last") is None
        raise
    assert item_text(call, "first") == item_text(call, "last") == "new"
    return answer


def batch_deletion(call: Call, key: Any) -> Any:
    op = module_of("langgraph.store.base").PutOp
    return call("batch", [op(SPACE, key, None)]) and None


ITEMS: Final = Adapter(
    module="langgraph",
    needs="langgraph.store.base",
    mark="langgraph",
    make=lambda module, store: module.CerataStore(
        store, ttl={"refresh_on_read": True, "default_ttl": 60}
    ),
    uri_of=lambda key: f"lg:users//{key}",
    kinds={"langgraph.item", "langgraph.path"},
    scope=DEFAULT,
    read=item_text,
    put=put_item,
    writes={
        "put": (lambda call, key: put_item(call, key, "new"), is_new),
        "delete": (lambda call, key: call("delete", SPACE, key), is_gone),
        "batch": (batch, is_new),
        "batch, a deletion": (batch_deletion, is_gone),
        # They begin lifetimes again.
        "get": (lambda call, key: call("get", SPACE, key), is_same),
        "search": (lambda call, _: call("search", SPACE), is_same),
        "sweep_ttl": (lambda call, _: call("sweep_ttl"), is_same),
    },
    reads={
        *("store", "list_namespaces", "supports_ttl", "ttl_config", "from_conn_string"),
        # A thread that calls sweep_ttl.
        *("start_ttl_sweeper", "stop_ttl_sweeper"),
    },
)


# LangGraph's checkpoints: the key is a thread, and the text the channel "text".


def config_of(thread: Any, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def checkpoint(number: int, text: str) -> Any:
    made = module_of("langgraph.checkpoint.base").empty_checkpoint()
    return {**made, "id": f"{number:032}", "channel_values": {"text": text}}


def thread_text(call: Call, thread: Any) -> Any:
    found = call("get_tuple", config_of(thread))
    return None if found is None else found.checkpoint["channel_values"]["text"]


def put_checkpoint(call: Call, thread: Any, text: str) -> Any:
    found = call("get_tuple", config_of(thread))
    number = 1 if found is None else int(found.checkpoint["id"]) + 1
    metadata = {"step": number, "run_id": f"run of {thread}"}
    return call("put", config_of(thread), checkpoint(number, text), metadata, {})


def put_writes(call: Call, thread: Any) -> Any:
    config = config_of(thread, checkpoint_id=f"{1:032}")
    call("put_writes", config, [("text", "new")], "task")
    found = call("get_tuple", config)
    assert found is None or found.pending_writes == [("task", "text", "new")]


def copied(call: Call, thread: Any) -> Any:
    """Copies the thread to another, and that to the thread."""
    call("copy_thread", thread, "copy")
    assert thread_text(call, "copy") == thread_text(call, thread)
    put_checkpoint(call, "newer", "old")
    put_checkpoint(call, "newer", "old")
    put_checkpoint(call, "newer", "old")
    put_checkpoint(call, "newer", "new")
    call("copy_thread", "newer", thread)


CHECKPOINTS: Final = Adapter(
    module="langgraph",
    needs="langgraph.checkpoint.base",
    mark="langgraph",
    make=lambda module, store: module.CerataSaver(store),
    uri_of=None,
    kinds=set(),
    scope=DEFAULT,
    read=thread_text,
    put=put_checkpoint,
    writes={
        "put": (lambda call, key: put_checkpoint(call, key, "new"), is_new),
        "put_writes": (put_writes, is_same),
        "delete_thread": (lambda call, key: call("delete_thread", key), is_gone),
        "delete_for_runs": (lambda call, key: call("delete_for_runs", [f"run of {key}"]), is_gone),
        "delete_for_runs, an id": (lambda call, key: call("delete_for_runs", [key]), is_same),
        "copy_thread": (copied, is_new),
        "prune": (lambda call, key: call("prune", ["other", key]), is_same),
        "prune, all": (lambda call, key: call("prune", [key], strategy="delete"), is_gone),
    },
    reads={
        *("aget_delta_channel_history", "basis", "config_specs", "from_conn_string", "get"),
        *("get_delta_channel_history", "get_next_version", "get_tuple", "list", "serde", "store"),
        "with_allowlist",
    },
)


# LangChain's documents and bytes.


def vectors_over(module: Any, store: Store) -> Any:
    fake = module_of("langchain_core.embeddings").DeterministicFakeEmbedding(size=4)
    return module.CerataVectorStore(store, fake)


def document_text(call: Call, key: Any) -> Any:
    documents = call("get_by_ids", [key])
    return documents[0].page_content if documents else None


def add_texts(call: Call, key: Any) -> Any:
    """Adds the key between others, which are all there or all absent."""
    try:
        answer = call("add_texts", ["new"] * 3, ids=["first", key, "last"])
    except cerata.CerataError:
        assert call("get_by_ids", ["first", "last"]) == []
        raise
    assert [document.id for document in call("get_by_ids", answer)] == answer
    return answer


def document_of(key: Any) -> Any:
    kind = module_of("langchain_core.documents").Document
    return kind.model_construct(page_content="new", id=key, metadata={})


def from_texts(call: Call, key: Any) -> Any:
    call("from_texts", ["new"], call("embeddings"), ids=[key], store=call("store"))
    return [key]


def from_documents(call: Call, key: Any) -> Any:
    call("from_documents", [document_of(key)], call("embeddings"), store=call("store"))
    return [key]


def is_added(answer: Any, before: Any, after: Any) -> bool:
    """Or the id was absent, so the document has a random one."""
    del before
    return after == "new" or not answer[0] or len(answer[0]) == 32


DOCUMENTS: Final = Adapter(
    module="langchain",
    needs="langchain_core",
    mark="langchain",
    make=vectors_over,
    uri_of=lambda key: f"lc:{key}",
    kinds={"langchain.document"},
    scope=DEFAULT,
    read=document_text,
    put=lambda call, key, text: call("add_texts", [text], ids=[key]),
    writes={
        "add_texts": (add_texts, lambda answer, _, after: after == "new" or len(answer) == 3),
        "add_texts, the ids": (
            lambda call, key: call("add_texts", ["new"], ids=key),
            lambda answer, _, __: len(answer) == 1 and len(answer[0]) == 32,
        ),
        "add_documents": (lambda call, key: call("add_documents", [document_of(key)]), is_added),
        "from_texts": (from_texts, is_added),
        "from_documents": (from_documents, is_added),
        "delete": (lambda call, key: call("delete", ["none", key]), is_gone),
        "delete, all": (lambda call, _: call("delete"), is_gone),
    },
    reads={
        *("as_retriever", "embeddings", "get_by_ids", "max_marginal_relevance_search"),
        *("max_marginal_relevance_search_by_vector", "search", "similarity_search"),
        *("similarity_search_by_vector", "similarity_search_with_relevance_scores"),
        *("similarity_search_with_score", "store"),
    },
)


def bytes_text(call: Call, key: Any) -> Any:
    [value] = call("mget", [key])
    return None if value is None else value.decode()


BYTES: Final = Adapter(
    module="langchain",
    needs="langchain_core",
    mark="langchain",
    make=lambda module, store: module.CerataByteStore(store),
    uri_of=lambda key: f"kv:{key}",
    kinds={"langchain.bytes"},
    scope=DEFAULT,
    read=bytes_text,
    put=lambda call, key, text: call("mset", [(key, text.encode())]),
    writes={
        "mset": (lambda call, key: call("mset", [("first", b"x"), (key, b"new")]), is_new),
        "mdelete": (lambda call, key: call("mdelete", ["none", key]), is_gone),
    },
    reads={"mget", "yield_keys"},
)


# The files of Claude's memory tool.


def path_of(key: Any) -> Any:
    return f"/memories/{key}" if isinstance(key, str) else key


def on_file(name: str, **arguments: str) -> Write:
    def run(call: Call, key: Any) -> Any:
        return call(name, SimpleNamespace(path=path_of(key), **arguments))

    return run


def file_text(call: Call, key: Any) -> Any:
    try:
        shown = call("view", SimpleNamespace(path=path_of(key)))
    except cerata.InvalidInput:
        return None
    return "\n".join(line.partition("\t")[2] for line in shown.splitlines()[1:])


def rename(call: Call, key: Any) -> Any:
    before = file_text(call, key)
    paths = SimpleNamespace(old_path=path_of(key), new_path="/memories/renamed")
    answer = call("rename", paths)
    assert file_text(call, "renamed") == before
    return answer and None


def rename_to(call: Call, key: Any) -> Any:
    call("create", SimpleNamespace(path="/memories/source", file_text="new"))
    paths = SimpleNamespace(old_path="/memories/source", new_path=path_of(key))
    answer = call("rename", paths)
    assert file_text(call, "source") is None
    return answer


def by_call(call: Call, key: Any) -> Any:
    return call("call", {"command": "create", "path": path_of(key), "file_text": "new"})


def executed(call: Call, key: Any) -> Any:
    named = {"path": path_of(key), "file_text": "new"}
    return call("execute", SimpleNamespace(command="create", **named))


FILES: Final = Adapter(
    module="anthropic",
    needs="anthropic.lib.tools",
    mark="anthropic",
    make=lambda module, store: module.CerataMemoryTool(store),
    uri_of=lambda key: f"/memories/{key}",
    kinds={"anthropic.file"},
    scope=DEFAULT,
    read=file_text,
    put=lambda call, key, text: (
        call("create", SimpleNamespace(path=path_of(key), file_text=text))
        if file_text(call, key) is None
        else call("insert", SimpleNamespace(path=path_of(key), insert_line=0, insert_text=text))
    ),
    writes={
        "create": (on_file("create", file_text="new"), is_new),
        "str_replace": (
            on_file("str_replace", old_str="text", new_str="textnew"),
            lambda answer, before, after: (
                "has been edited" in answer and after == before.replace("text", "textnew")
            ),
        ),
        "insert": (
            lambda call, key: call(
                "insert", SimpleNamespace(path=path_of(key), insert_line=0, insert_text="new")
            ),
            lambda _, before, after: after.splitlines() == ["new", *before.splitlines()],
        ),
        "delete": (
            on_file("delete"),
            lambda answer, before, after: (
                answer.startswith("Successfully deleted") and before is not None and after is None
            ),
        ),
        "rename": (rename, is_gone),
        "rename, the destination": (rename_to, is_new),
        "clear_all_memory": (lambda call, _: call("clear_all_memory") and None, is_gone),
        "undo": (
            lambda call, key: call("undo", path_of(key)),
            lambda answer, _, after: (
                answer.startswith("Successfully restored") and after is not None
            ),
        ),
        "call": (by_call, is_new),
        "execute": (executed, is_new),
    },
    reads={"name", "store", "to_dict", "view"},
)

ASYNC_FILES: Final = FILES._replace(make=lambda module, store: module.CerataAsyncMemoryTool(store))


# Sessions of OpenAI's SDK: the key is the id of the session. An object has one, so a call makes it.


def session_call(name: str, *arguments: Any) -> Write:
    return lambda call, key: call("session", key, name, *arguments)


def session_text(call: Call, key: Any) -> Any:
    items = call("session", key, "get_items")
    return " ".join(item["content"] for item in items) or None


def add_items(call: Call, key: Any, text: str) -> Any:
    return call("session", key, "add_items", [{"role": "user", "content": text}])


def is_popped(answer: Any, before: Any, after: Any) -> bool:
    popped = "" if answer is None else answer["content"]
    return bool(f"{after or ''} {popped}".strip() == (before or ""))


class Sessions:
    """The sessions of a store by their ids."""

    def __init__(self, module: Any, store: Store) -> None:
        self._module, self._store = module, store

    async def session(self, key: Any, name: str, *arguments: Any) -> Any:
        return await getattr(self._module.CerataSession(key, self._store), name)(*arguments)


SESSIONS: Final = Adapter(
    module="openai_agents",
    needs="agents.memory.session_settings",
    mark="openai_agents",
    make=Sessions,
    uri_of=lambda key: f"openai:{key}/",
    kinds={"openai.item"},
    scope=DEFAULT,
    read=session_text,
    put=add_items,
    writes={
        "add_items": (
            lambda call, key: add_items(call, key, "new"),
            lambda _, before, after: after == f"{before or ''} new".strip(),
        ),
        "pop_item": (session_call("pop_item"), is_popped),
        "clear_session": (session_call("clear_session"), is_gone),
    },
    reads={"get_items", "store"},
)


# The memories of ADK.

ANNA: Final = {"app_name": "notes", "user_id": "anna"}


def content_of(text: str) -> Any:
    types = module_of("google.genai.types")
    return types.Content(role="user", parts=[types.Part(text=text)])


def memory_text(call: Call, key: Any) -> Any:
    """Return the text of a memory, whatever its words are."""
    for word in ("text", "newer", "new"):
        for memory in call("search_memory", query=word, **ANNA).memories:
            if memory.id == key:
                return memory.content.parts[0].text
    return None


def add_memory(call: Call, key: Any, text: str) -> Any:
    entry = module_of("google.adk.memory.memory_entry").MemoryEntry
    memories = [entry.model_construct(id=key, content=content_of(text), custom_metadata={})]
    return call("add_memory", memories=memories, **ANNA)


def event_of(key: Any, text: str) -> Any:
    event = module_of("google.adk.events.event").Event
    made = event(author="user", content=content_of(text), timestamp=1_790_000_000.5)
    made.id = key
    return made


def add_session(call: Call, key: Any) -> Any:
    session = module_of("google.adk.sessions.session").Session
    made = session(id="s1", events=[event_of(key, "new")], **ANNA)
    return call("add_session_to_memory", made)


def is_added_once(answer: Any, before: Any, after: Any) -> bool:
    """Or it was deleted, or has no id."""
    del answer
    return after == before if before is not None else after in ("new", None)


MEMORIES: Final = Adapter(
    module="google_adk",
    needs="google.adk.memory.base_memory_service",
    mark="google_adk",
    make=lambda module, store: module.CerataMemoryService(store, k=50),
    uri_of=lambda key: f"adk:{key}",
    kinds={"adk.memory"},
    scope={**DEFAULT, "app": "notes", "user_id": "anna"},
    read=memory_text,
    put=add_memory,
    writes={
        "add_memory": (
            lambda call, key: add_memory(call, key, "new"),
            lambda _, before, after: after == "new" or before is None,
        ),
        "add_events_to_memory": (
            lambda call, key: call("add_events_to_memory", events=[event_of(key, "new")], **ANNA),
            is_added_once,
        ),
        "add_session_to_memory": (add_session, is_added_once),
        "delete_memory": (
            lambda call, key: call("delete_memory", memory_id=key, **ANNA),
            lambda _, before, after: after is None or before == after,
        ),
    },
    reads={"search_memory", "store"},
)

ADAPTERS: Final[Mapping[str, Adapter]] = {
    "CerataStore": ITEMS,
    "CerataSaver": CHECKPOINTS,
    "CerataVectorStore": DOCUMENTS,
    "CerataByteStore": BYTES,
    "CerataMemoryTool": FILES,
    "CerataAsyncMemoryTool": ASYNC_FILES,
    "CerataSession": SESSIONS,
    "CerataMemoryService": MEMORIES,
}

READERS: Final = {"CerataRetriever", "RefusedCommand"}
"""The public classes of adapters that write nothing."""
