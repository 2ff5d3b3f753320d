"""Descriptions of events: a few words for people, and plain values."""

from typing import Final

from cerata.engine.events import (
    AccessFrames,
    AssertFact,
    Branch,
    DeleteFrame,
    Erased,
    Event,
    EventBody,
    ExtractFacts,
    ImportBatch,
    JsonValue,
    LinkFacts,
    MergeEntities,
    PutEntity,
    PutFrame,
    PutPredicate,
    PutTag,
    RecallContext,
    RetractFact,
    SplitEntity,
    SupersedeFrame,
    UnknownBody,
    UnlinkFacts,
    UnmergeEntities,
    UnsplitEntity,
    UseEmbedder,
)
from cerata.engine.packs import of_packs, packs

from ..values.words import bytes_text, clipped, counted

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
    if isinstance(body, Erased):
        return "(erased)"
    if isinstance(body, UnknownBody):
        return f"(version {body.kind_version} of {body.kind}: kept, not applied by this Cerata)"
    if isinstance(body, PutFrame):
        return _describe_frame(body)
    if isinstance(body, Branch):
        return f"after event {body.seq:,}, as {body.id.hex()}"
    if isinstance(body, SupersedeFrame):
        return f"#{body.old} by #{body.new}"
    if isinstance(body, DeleteFrame):
        return f"#{body.frame}"
    if isinstance(body, PutTag):
        return f"{body.tag} names event {body.at}"
    if isinstance(body, UseEmbedder):
        return f"{body.name}, {body.space}" if body.name else body.space
    if isinstance(body, ExtractFacts):
        by = f"{body.extractor} {body.extractor_version}"
        return f"{counted(body.count, 'fact')} in #{body.frame} by {by}"
    if isinstance(body, ImportBatch):
        return body.dialect if body.count is None else f"{counted(body.count, 'line')} of facts"
    if isinstance(body, RecallContext):
        facts = f", {counted(len(body.facts), 'fact')}" if body.facts else ""
        return f"{counted(len(body.frames), 'frame')}{facts} for {body.query}"
    if isinstance(body, AccessFrames):
        return ", ".join(f"#{frame}" for frame in body.frames)
    return body.describe() or _describe_fact(body)


def _describe_fact(body: EventBody) -> str:
    if isinstance(body, AssertFact):
        return f"{body.subject} · {body.predicate} · {body.object}"
    if isinstance(body, RetractFact):
        return f"#{body.fact}"
    if isinstance(body, PutPredicate):
        return f"{body.predicate} has {'one value' if body.functional else 'values'} at a time"
    if isinstance(body, PutEntity):
        return ", ".join((body.entity, *body.aliases))
    if isinstance(body, MergeEntities):
        return f"{body.entity} is read as {body.into}"
    if isinstance(body, SplitEntity):
        return f"{body.entity} is {body.into} in {', '.join(f'#{fact}' for fact in body.facts)}"
    if isinstance(body, UnmergeEntities):
        return f"#{body.merge}"
    if isinstance(body, LinkFacts):
        target = body.target if body.target is not None else body.frame
        return f"#{body.fact} {body.kind.replace('_', ' ')} #{target}"
    if isinstance(body, UnlinkFacts):
        return f"#{body.link}"
    return f"#{body.split}" if isinstance(body, UnsplitEntity) else ""


def _describe_frame(body: PutFrame) -> str:
    name = body.title or body.uri
    if body.chunk_count is not None:
        return f"{name or 'a document'} ({counted(body.chunk_count, 'passage')})"
    if body.blob is not None:
        return f"{name or 'bytes'} ({bytes_text(body.blob.size)})"
    return f"{name}: {body.text}" if name else body.text or ""


def event_row(event: Event) -> dict[str, JsonValue]:
    """Return an event as plain values, with its leaf hash."""
    row = event.to_dict()
    body = row.pop("body")
    return {**row, "summary": clipped(describe(event), 200), "body": body}
