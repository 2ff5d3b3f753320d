"""Names of calls and keywords that moved: an old one is an error that has the new one.

`docs/renamed.md` is made from this table: ``python -m tools.renamed``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.packs import packs

_MOVED: Final = {
    "graph": """
        assert_facts=assert_many retract_facts=retract_many fact fact_history=versions
        search_facts=search extract declare_predicate=declare put_entity=name entity entities
        resolve merge_entities=merge unmerge split_entity=split unsplit link unlink links
        neighbours walk paths cooccurring conflicts why evidence
    """,
    "history": """
        history=of audit blame since compare bisect explain rerun_recall=rerun tag tags view around
        timeline last restore salvaged
    """,
    "files": """
        remember_files=remember find_uri=by_uri find_content=by_content find_stored=stored content
        children chunks source_of=source highlights values
    """,
    "stream": "follow refresh commit projection digests replay",
    "interchange": "export_facts import_facts export_events import_events",
    "upkeep": "compact maintain rebuild sweep info fork branches speculate apply drafts_after",
    "embeddings": """
        embed_missing=fill embedder remembered_embedder=used embedding=of token_embedding=tokens_of
    """,
}

RENAMED: Final = {
    pair.partition("=")[0]: f"{handle}.{pair.rpartition('=')[2]}"
    for handle, pairs in _MOVED.items()
    for pair in pairs.split()
}
"""The old name of each call of a store or view, and its handle and name there."""


def functions() -> dict[str, str]:
    """Return the public place of each function of a pack that takes the store first."""
    return {name: place for pack in packs() for name, place in pack.functions.items()}


def moved_to(kind: str, name: str) -> str:
    """Return the message of an error about a name that a store or view lacks."""
    lacks = f"{kind!r} object has no attribute {name!r}"
    place = functions().get(name)
    if place is not None:
        return f"{lacks}: use {place}({kind.lower()}, …) (docs/renamed.md)"
    new = RENAMED.get(name)
    return lacks if new is None else f"{lacks}: use {kind.lower()}.{new} (docs/renamed.md)"


def _fields(argument: str, value: str, names: str) -> dict[str, str]:
    """Return the new place of keywords that are fields of a value now, by their old names.

    >>> _fields("page", "Page", "offset")
    {'offset': 'page=cerata.Page(offset=…)'}
    """
    pairs = (name.split("=") for name in names.split())
    return {old: f"{argument}=cerata.{value}({(new or [old])[0]}=…)" for old, *new in pairs}


_ASKED: Final = _fields(
    "vectors",
    "Vectors",
    "embedding=dense space token_embedding=tokens tokens_space token_weights approximate",
) | _fields("where", "Filter", "when=content include_superseded")
_CLOSED: Final = _fields("where", "Filter", "include_superseded include_deleted")

KEYWORDS: Final = {
    "put_frame": _fields(
        "vectors", "Vectors", "embedding=dense space token_embedding=tokens tokens_space"
    )
    | _fields(
        "options",
        "PutOptions",
        "labels track parent content_dates created expires search_text replace because scope actor"
        " key",
    ),
    "put_frames": _fields(
        "vectors", "Vectors", "embeddings=dense space token_embeddings=tokens tokens_space"
    )
    | _fields("options", "PutOptions", "expires scope actor key"),
    "remember": _fields(
        "options",
        "PutOptions",
        "labels track parent content_dates created expires embed_limit scope actor",
    ),
    "files.remember": _fields("options", "PutOptions", "labels embed_limit scope actor"),
    "assert_fact": _fields("options", "FactOptions", "assumptions because scope actor key"),
    "search": _ASKED
    | _CLOSED
    | _fields("vectors", "Vectors", "min_cosine")
    | _fields("page", "Page", "offset after group_by")
    | {"min_score": "floor=…"},
    "recall": _ASKED
    | _fields("layout", "Layout", "entry_tokens form order framing neighbours")
    | _fields("profile", "Ranking", "mode rerank")
    | _fields("record", "WriteOptions", "actor"),
    "frames": _CLOSED,
    "timeline": _CLOSED,
    "open": _fields(
        "options",
        "OpenOptions",
        "shared require_scope salvage sync lock_timeout ring_bytes cache_bytes",
    ),
}
"""The keywords of a call that moved into a value, and what to pass in place of each."""


def refuse(call: str, keywords: Collection[str]) -> None:
    """Raise an error for keywords that a call does not have, if there are any.

    Raises:
        InvalidInput: a keyword moved; the remedy is its new place.
        TypeError: the call never had it.
    """
    for name in keywords:
        new = KEYWORDS[call].get(name)
        if new is None:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}")
        raise InvalidInput(f"{call}() has no {name}=", remedy=f"Pass {new} (docs/renamed.md).")
