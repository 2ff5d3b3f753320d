"""Descriptions of events: a few words for people, and plain values."""

from typing import Final

from cerata.engine.events import Erased, Event, JsonValue
from cerata.engine.packs import of_packs, packs
from cerata.engine.words import clipped

_KERNEL: Final = {
    "putFrame": "put",
    "deleteFrame": "delete",
    "supersedeFrame": "supersede",
    "putTag": "tag",
    "putEmbedding": "embed",
    "useEmbedder": "use embedder",
    "assertFact": "assert",
    "retractFact": "retract",
    "putPredicate": "declare",
    "putEntity": "name",
    "mergeEntities": "merge",
    "unmergeEntities": "unmerge",
    "splitEntity": "split",
    "unsplitEntity": "unsplit",
    "extractFacts": "extract",
    "importBatch": "import",
    "recall": "recall",
    "access": "use",
    "branch": "fork",
}


@of_packs
def acts() -> dict[str, str]:
    """Return the names of kinds of events for people; other kinds have their names on disk."""
    return {**_KERNEL, **{kind: act for pack in packs() for kind, act in pack.acts.items()}}


def act_of(kind: str) -> str:
    """Return the name of a kind of events for people."""
    return acts().get(kind, kind)


def type_of_act(name: str) -> str:
    """Return the type of a name: as stored, or as the log prints it."""
    return next((kind for kind, act in acts().items() if act == name), name)


def describe(event: Event) -> str:
    """Return the content of an event in a few words."""
    body = event.body
    return "(erased)" if isinstance(body, Erased) else body.describe()


def event_row(event: Event) -> dict[str, JsonValue]:
    """Return an event as plain values, with its leaf hash."""
    row = event.to_dict()
    body = row.pop("body")
    return {**row, "summary": clipped(describe(event), 200), "body": body}
