"""Mutations of valid exports: every known kind, each item marked by a word of its own.

``python -m tests.memory.ingest.mutated_exports [COUNT]`` tries 10,000 mutations of each kind.
"""

import copy
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cerata.engine.errors import InvalidInput
from cerata.memory.ingest.formats.document import Document, parts_with
from cerata.memory.ingest.formats.registry import extract

ITEMS: Final = 9
_HIGH: Final = "\ud83d"


class Raw:
    """A value that Python's encoder cannot write: its JSON, as other programs write it."""

    def __init__(self, text: str) -> None:
        self.text = text


def _nested(depth: int) -> Raw:
    return Raw("[" * depth + "]" * depth)


ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 5, 1.5, "", " ", "n/a", "\ufeff", "\0", _HIGH, "half " + _HIGH),
    *([], {}, [None], [[]], [5], {"x": 1}, {"text": None}, {"type": 5}, {"type": "image_url"}),
    *(Raw("NaN"), Raw("-Infinity"), Raw("1e999"), Raw("9" * 5_000), "9" * 5_000, -(10**11), 10**19),
    *(
        _nested(90),
        _nested(2_000),
        "s" * 300,
        "2024-13-45",
        "0000-00-00T00:00:00Z",
        1714557600123456,
    ),
)


@dataclass
class Export:
    """An export: its name, its value or lines, and the containers of its items."""

    name: str
    value: Any
    items: list[tuple[Any, Any]]
    """The list or object that holds each item, and its index or name there."""
    lines: bool = False

    def encode(self) -> str:
        if self.lines:
            return "".join(_json(line) + "\n" for line in self.value)
        return _json(self.value)


def _json(value: Any) -> str:
    raws: list[str] = []

    def of(item: object) -> object:
        raws.append(item.text)  # type: ignore[attr-defined]
        return f"@raw{len(raws) - 1}@"

    text = json.dumps(value, default=of)
    for at, raw in enumerate(raws):
        text = text.replace(f'"@raw{at}@"', raw)
    return text


def word(at: int) -> str:
    """The word of an item, which no other part of the export has."""
    return f"marker{at:03}x"


def _role(at: int) -> str:
    return "assistant" if at % 2 else "user"


def _in_list(items: list[Any]) -> list[tuple[Any, Any]]:
    return [(items, at) for at in range(len(items))]


def messages() -> Export:
    turns = [
        {"role": _role(at), "content": f"Turn {word(at)}.", "timestamp": 1714557600 + at, "id": at}
        for at in range(ITEMS)
    ]
    return Export("chat.json", turns, _in_list(turns))


def message_lines() -> Export:
    turns = [
        {"speaker": "ab"[at % 2], "text": word(at), "time": "2024-05-01T10:00:00Z", "thread": "t"}
        for at in range(ITEMS)
    ]
    return Export("log.jsonl", turns, _in_list(turns), lines=True)


def openai() -> Export:
    turns: list[Any] = [
        {"role": _role(at), "content": [{"type": "text", "text": word(at)}, {"type": "image_url"}]}
        for at in range(ITEMS)
    ]
    turns[1] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "function": {"name": "search", "arguments": json.dumps({"q": word(1)})}}
        ],
    }
    turns[2] = {"role": "tool", "tool_call_id": "c", "content": word(2)}
    return Export("run.json", {"id": "run-1", "messages": turns}, _in_list(turns))


def openai_lines() -> Export:
    lines: list[Any] = []
    items: list[tuple[Any, Any]] = []
    for start in range(0, ITEMS, 3):
        turns = [{"role": _role(at), "content": word(at)} for at in range(start, start + 3)]
        lines.append({"messages": turns, "id": str(start)})
        items += _in_list(turns)
    return Export("runs.jsonl", lines, items, lines=True)


def claude() -> Export:
    chats: list[Any] = []
    items: list[tuple[Any, Any]] = []
    for start in range(0, ITEMS, 3):
        turns = [
            {
                "uuid": f"m{at}",
                "sender": "assistant" if at % 2 else "human",
                "text": word(at),
                "content": [{"type": "text", "text": word(at)}],
                "created_at": "2024-05-01T10:00:00.123456Z",
                "attachments": [],
            }
            for at in range(start, start + 3)
        ]
        chats.append({"uuid": f"u{start}", "name": "Chat", "chat_messages": turns})
        items += _in_list(turns)
    return Export("conversations.json", chats, items)


def chatgpt() -> Export:
    chats: list[Any] = []
    items: list[tuple[Any, Any]] = []
    for start in range(0, ITEMS, 3):
        root = {"id": "root", "message": None, "parent": None, "children": [f"n{start}"]}
        tree: dict[str, Any] = {"root": root}
        for at in range(start, start + 3):
            tree[f"n{at}"] = {
                "id": f"n{at}",
                "parent": f"n{at - 1}" if at > start else "root",
                "children": [f"n{at + 1}"],
                "message": {
                    "id": f"n{at}",
                    "author": {"role": _role(at), "name": None},
                    "create_time": 1714557600.5 + at,
                    "content": {"content_type": "text", "parts": [word(at)]},
                },
            }
            items.append((tree, f"n{at}"))
        last = f"n{start + 2}"
        chats.append({"title": "Chat", "mapping": tree, "current_node": last, "id": f"c{start}"})
    return Export("conversations.json", chats, items)


def sharegpt() -> Export:
    turns = [{"from": "gpt" if at % 2 else "human", "value": word(at)} for at in range(ITEMS)]
    return Export("dataset.json", {"id": "1", "conversations": turns}, _in_list(turns))


def claude_code() -> Export:
    lines: list[Any] = [
        {
            "type": _role(at),
            "sessionId": "s1",
            "uuid": f"l{at}",
            "timestamp": "2024-05-01T10:00:00.000Z",
            "message": {"role": _role(at), "content": [{"type": "text", "text": word(at)}]},
        }
        for at in range(ITEMS)
    ]
    return Export("session.jsonl", lines, _in_list(lines), lines=True)


def codex() -> Export:
    lines: list[Any] = [
        {
            "timestamp": "2024-05-01T10:00:00.000Z",
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": _role(at),
                "content": [{"type": "input_text", "text": word(at)}],
            },
        }
        for at in range(ITEMS)
    ]
    return Export("rollout.jsonl", lines, _in_list(lines), lines=True)


KINDS: Final[dict[str, Callable[[], Export]]] = {
    made.__name__: made
    for made in (
        *(messages, message_lines, openai, openai_lines, claude),
        *(chatgpt, sharegpt, claude_code, codex),
    )
}


# --- mutations -----------------------------------------------------------------------------------


def odd(source: random.Random) -> Any:
    """Return an odd value of its own."""
    return copy.deepcopy(source.choice(ODD))


def _containers(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside of a value: the container, and the index or name there."""
    found: list[tuple[Any, Any]] = []
    members = value
    names: list[Any] = [*members] if hasattr(value, "items") else [*range(len(members))]
    for name in names:
        found.append((members, name))
        if type(members[name]) in (dict, list):
            found += _containers(members[name])
    return found


def mutate_item(export: Export, source: random.Random) -> set[int]:
    """Make an item, or a place inside of it, odd; return the numbers of the items."""
    at = source.randrange(ITEMS)
    container, name = export.items[at]
    item = container[name]
    inner = _containers(item) if isinstance(item, dict | list) and item else []
    if inner and source.random() < 0.8:
        container, name = source.choice(inner)
        if isinstance(container, dict) and source.random() < 0.3:
            del container[name]
            return {at}
    container[name] = odd(source)
    return {at}


def mutate_conversation(export: Export, source: random.Random) -> None:
    """Make a field of a conversation odd, or put an odd member beside items or conversations."""
    holder = source.choice([container for container, _ in export.items])
    lists: list[Any] = [listed for listed in (export.value, holder) if hasattr(listed, "append")]
    if lists and source.random() < 0.5:
        # After the items, whose places are numbers.
        source.choice(lists).append(odd(source))
        return
    chats = [chat for chat in _chats(export.value) if holder in chat.values()]
    if chats:
        fields = [name for name, value in chats[0].items() if value is not holder]
        chats[0][source.choice(fields)] = odd(source)


def _chats(value: Any) -> list[dict[str, Any]]:
    members: list[Any] = value if hasattr(value, "append") else [value]
    return [chat for chat in members if hasattr(chat, "items")]


def mutate_line(text: str, source: random.Random) -> tuple[bytes, set[int]]:
    """Damage one line of JSON Lines; return the bytes and the numbers of the items in it."""
    lines = text.encode().split(b"\n")[:-1]
    at = source.randrange(len(lines))
    line = lines[at]
    cut = source.randrange(1, len(line))
    damage = source.choice(
        (line[:cut], line[cut:], b"\0" * 9 + line[:cut], line[:cut] + b"\xff" + line[cut:],
         line[:cut] + b"\xe2\x82", b"<html>", b"{", b"]", b"null", b"5", b'"text"',
         line[:cut] + b"\0" + line[cut:], line[:cut] + b'"' + line[cut:])
    )  # fmt: skip
    hit = {n for n in range(ITEMS) if word(n).encode() in line}
    if source.random() < 0.2 and at + 1 < len(lines):
        # The writer was killed, and the next one wrote on.
        damage = line[:cut] + lines.pop(at + 1)
    lines[at] = damage
    joint = source.choice((b"\n", b"\r\n", b"\r", b"\n\n", b"\n \n"))
    start = source.choice((b"", b"\xef\xbb\xbf", b"\n"))
    end = source.choice((b"", joint))
    return start + joint.join(lines) + end, hit


@dataclass
class Trial:
    """What became of a mutated export: its turns, and the items whose word is in no turn."""

    document: Document
    turns: int
    lost: set[int]

    @property
    def skipped(self) -> int:
        return parts_with(self.document.flaws, "skipped")


def read(name: str, data: bytes) -> Trial:
    document = extract(data, name)
    spoken = [
        document.text[section.start : section.end]
        for section in document.sections
        if section.role is not None
    ]
    text = "\n".join(spoken)
    return Trial(document, len(spoken), {at for at in range(ITEMS) if word(at) not in text})


def check(kind: str, seed: object) -> str | None:
    """Try one mutation of a kind; return the fault, or None."""
    source = random.Random(f"{kind} {seed}")
    export = KINDS[kind]()
    touched: set[int] = set()
    breaks_json = source.random() < 0.3
    if breaks_json and export.lines:
        data, touched = mutate_line(export.encode(), source)
    elif breaks_json and source.random() < 0.3:
        return _check_byte(export, source)
    elif breaks_json:
        text = export.encode()
        cut = source.randrange(text.index(word(2)), len(text))
        data = text[:cut].encode()
        touched = {at for at in range(ITEMS) if text.index(word(at)) + 400 > cut}
    else:
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            touched |= mutate_item(export, source)
        if source.random() < 0.3:
            mutate_conversation(export, source)
        data = export.encode().encode()
    trial = read(export.name, data)
    if not trial.document.is_extracted:
        return f"no transcript: {data!r}"
    if trial.lost - touched:
        return f"whole items were lost: {trial.lost - touched} of {data!r}"
    # A stretch that is not JSON is one part, with as many items as it has.
    is_unknown = breaks_json and (not export.lines or kind == "openai_lines")
    missing = ITEMS - trial.turns
    if missing > 0 and trial.skipped < (1 if is_unknown else missing):
        return f"{missing} lost, {trial.skipped} skipped: {data!r}"
    places = [place for flaw in trial.document.flaws for place in flaw.places]
    if any(not place for place in places):
        return f"a flaw without a place: {trial.document.flaws}"
    return None


def _check_byte(export: Export, source: random.Random) -> str | None:
    """Try one damaged byte: the turns after it may be unclear, and each lost stretch is named."""
    data = bytearray(export.encode().encode())
    at = source.randrange(len(data))
    data[at : at + 1] = source.choice(
        (b"", b'"', b"{", b"}", b"]", b",", b"\\", b"\xff", b"\0", b"\n")
    )
    try:
        trial = read(export.name, bytes(data))
    except InvalidInput:
        return None  # no chat, since its list has lost its name; and no text with this byte
    is_named = not trial.document.is_extracted or trial.skipped or trial.turns >= ITEMS
    return None if is_named else f"lost without a word: {bytes(data)!r}"


def main(count: int) -> int:
    """Try ``count`` mutations of each kind, and print the faults."""
    faults = 0
    for kind in KINDS:
        found = [fault for seed in range(count) if (fault := check(kind, seed)) is not None]
        faults += len(found)
        sys.stdout.write(f"{kind}: {count:,} mutations, {len(found):,} faults\n")
        sys.stdout.writelines(f"    {fault[:1_500]}\n" for fault in found[:3])
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
