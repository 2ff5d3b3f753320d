"""The verb that embeds remembered frames: embed."""

from argparse import Namespace
from typing import Final

import cerata
from cerata.engine.errors import InvalidInput
from cerata.memory.values.words import counted
from cerata.retrieval.embedders.built_in import built_in
from cerata.retrieval.embedders.embedder import Embedder
from cerata.retrieval.embedders.identity import VectorType

from .filter_options import where_of
from .output import Output
from .pair_options import scope_of
from .store_options import actor_of, file_of, packs_of, reading

_NEEDED: Final = ("model", "revision", "dimension")
"""The identity of an endpoint's model, which the endpoint cannot report."""


def run_embed(options: Namespace, output: Output) -> int:
    """Embed frames without a vector in batches; an interrupted run can be continued."""
    where = where_of(options)
    embedder = _embedder(options)
    # The file must exist; without options its remembered embedder goes on.
    options.embedder = None
    with reading(options) as store:
        before = store.remembered_embedder()
        if embedder is None and store.embedder is None:
            embedder = cerata.MiniLMEmbedder()
    with (
        cerata.open(
            file_of(options),
            scope=scope_of(options),
            shared=options.shared,
            actor=actor_of(options),
            embedder=embedder,
            lock_timeout=options.lock_timeout,
            environment=options.environment,
            packs=packs_of(options),
        ) as store,
        output.progress("embedding", 0) as steps,
    ):
        embedded = store.embed_missing(
            where=where, progress=lambda at, of: steps.stand("embedding", at, of)
        )
    for notice in embedded.notices:
        output.warn(notice)
    if before is not None and before.space != embedded.space and not embedded.notices:
        output.warn(f"the file used {before.space}, and now uses {embedded.space}")
    output.line(f"{counted(embedded.frames, 'frame')} embedded in {embedded.space}")
    if embedded.tokens is not None:
        frames = counted(embedded.tokens.frames, "frame")
        output.line(f"{frames} embedded by tokens in {embedded.tokens.space}")
    if embedded.passed:
        output.line(f"{embedded.passed:,} were embedded or closed by other writers", style="dim")
    output.result({"file": store.path, **embedded.to_dict()})
    return 0


def _embedder(options: Namespace) -> Embedder | None:
    """Return the embedder that the options name; None without a name."""
    dtype: VectorType = "i1" if options.int8 else "f4"
    named = [name for name in (*_NEEDED, "key_variable") if getattr(options, name) is not None]
    if options.url is None:
        if named:
            name = named[0].replace("_", "-")
            raise InvalidInput(f"--{name} needs --url", remedy="Add --url.")
        if options.embedder is not None:
            if options.int8 or options.tokens:
                option = "--int8" if options.int8 else "--tokens"
                raise InvalidInput(
                    f"{option} does not go with --embedder",
                    remedy="Use a name such as minilm-int8 or minilm-tokens.",
                )
            return built_in(options.embedder)
        if not (options.int8 or options.tokens):
            return None
        return cerata.MiniLMEmbedder(dtype=dtype, token_dimension=128 if options.tokens else None)
    if options.embedder is not None:
        raise InvalidInput("--embedder does not go with --url", remedy="Remove one of the two.")
    if options.tokens:
        raise InvalidInput("--tokens does not go with --url", remedy="Remove --tokens or --url.")
    missing = [name for name in _NEEDED if name not in named]
    if missing:
        raise InvalidInput(f"--url needs --{missing[0]}", remedy=f"Add --{missing[0]}.")
    return cerata.EndpointEmbedder(
        options.url,
        model=options.model,
        revision=options.revision,
        dimension=options.dimension,
        dtype=dtype,
        key_variable=options.key_variable,
    )
