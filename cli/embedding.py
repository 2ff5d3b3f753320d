"""The verb that gives vectors to what is remembered: embed."""

from argparse import Namespace
from typing import Final

import cerata
from cerata.engine.errors import InvalidInput
from cerata.retrieval.embedders.embedder import Embedder
from cerata.retrieval.embedders.identity import VectorType

from .narrowing import where_of
from .opening import file_of, reading
from .output import Output, counted
from .parser import Adding, add_filters, add_verb

_NEEDED: Final = ("model", "revision", "dimension")
"""What the identity of an endpoint's model is made of; none can be asked of it."""


def add_verbs(adding: Adding) -> None:
    """Add embed."""
    embed = add_verb(
        adding,
        "embed",
        "give each current frame that lacks one a vector",
        run_embed,
        examples=(
            "embed",
            "embed --int8 --tag people",
            "embed --tokens",
            "embed --url http://localhost/v1 --model m --revision 1 --dimension 768",
        ),
    )
    embed.add_argument("--int8", action="store_true", help="a byte for each number")
    embed.add_argument(
        "--tokens", action="store_true", help="of MiniLM: a vector for each token, too"
    )
    embed.add_argument("--url", help="an endpoint's (MiniLM on this machine)")
    embed.add_argument("--model", help="with --url: the model's name")
    embed.add_argument("--revision", help="with --url: what you call its present state")
    embed.add_argument("--dimension", type=int, metavar="COUNT", help="with --url: of its vectors")
    embed.add_argument("--key-variable", metavar="NAME", help="with --url: what holds the key")
    add_filters(embed, closed=False)


def run_embed(options: Namespace, output: Output) -> int:
    """Embed what lacks a vector, batch by batch; what was stopped goes on."""
    embedder = _embedder(options)
    # What is embedded must exist.
    reading(options).close()
    with (
        cerata.open(
            file_of(options),
            embedder=embedder,
            lock_timeout=options.lock_timeout,
            environment=options.environment,
        ) as store,
        output.progress("embedding", 0) as steps,
    ):
        done = store.embed_missing(
            where=where_of(options), progress=lambda at, of: steps.stand("embedding", at, of)
        )
    output.line(f"{counted(done.frames, 'frame')} given a vector in {done.space}")
    if done.tokens is not None:
        frames = counted(done.tokens.frames, "frame")
        output.line(f"{frames} given token vectors in {done.tokens.space}")
    if done.passed:
        output.line(f"{done.passed:,} were embedded or closed by others meanwhile", style="dim")
    output.result({"file": store.path, **done.to_dict()})
    return 0


def _embedder(options: Namespace) -> Embedder:
    """Return the embedder that the options name."""
    dtype: VectorType = "i1" if options.int8 else "f4"
    given = [name for name in (*_NEEDED, "key_variable") if getattr(options, name) is not None]
    if options.url is None:
        if given:
            raise InvalidInput(f"--{_dashed(given[0])} is of an endpoint", remedy="Give --url.")
        return cerata.MiniLMEmbedder(dtype=dtype, token_dimension=128 if options.tokens else None)
    if options.tokens:
        raise InvalidInput("--tokens is of MiniLM", remedy="Leave out --url.")
    missing = [name for name in _NEEDED if name not in given]
    if missing:
        raise InvalidInput(f"--url came without --{missing[0]}", remedy=f"Give --{missing[0]}.")
    return cerata.EndpointEmbedder(
        options.url,
        model=options.model,
        revision=options.revision,
        dimension=options.dimension,
        dtype=dtype,
        key_variable=options.key_variable,
    )


def _dashed(name: str) -> str:
    return name.replace("_", "-")
