"""The parser of embed."""

from .verb_parser import Adding, add_embedder, add_filters, add_verb


def add_verbs(adding: Adding) -> None:
    """Add embed."""
    embed = add_verb(
        adding,
        "embed",
        "embed the current frames that have no vector",
        "embed.run_embed",
        writes=True,
        examples=(
            "embed",
            "embed --embedder minilm-tokens --tag people",
            "embed --int8",
            "embed --url http://localhost/v1 --model m --revision 1 --dimension 768",
        ),
    )
    embed.add_argument("--int8", action="store_true", help="store a byte for each number")
    embed.add_argument(
        "--tokens", action="store_true", help="with MiniLM: a vector for each token, too"
    )
    embed.add_argument("--url", help="URL of an endpoint (MiniLM on this machine)")
    embed.add_argument("--model", help="with --url: the model's name")
    embed.add_argument("--revision", help="with --url: your name for the model's state")
    embed.add_argument(
        "--dimension", type=int, metavar="COUNT", help="with --url: numbers in a vector"
    )
    embed.add_argument(
        "--key-variable", metavar="NAME", help="with --url: environment variable with the key"
    )
    add_embedder(embed)
    add_filters(embed, closed=False)
