"""The parser of graph."""

from .choices import DIRECTIONS
from .verb_parser import Adding, add_count, add_verb


def add_verbs(adding: Adding) -> None:
    """Add graph."""
    graph = add_verb(
        adding,
        "graph",
        "print the neighbours of an entity, and paths between entities",
        "graph.run_graph",
        lists=True,
        examples=(
            "graph alice",
            "graph alice --hops 3 --valid-at 2024-01-01",
            "graph alice --to acme",
            "graph alice --together --at HEAD~10",
            "graph alice --hops 2 --plot alice.svg",
        ),
    )
    graph.add_argument("entity", metavar="ENTITY", help="name of the entity")
    shapes = graph.add_mutually_exclusive_group()
    shapes.add_argument(
        "--hops", type=int, metavar="COUNT", help="entities at most so many facts away, ranked"
    )
    shapes.add_argument("--to", metavar="ENTITY", help="shortest paths to another entity")
    shapes.add_argument("--together", action="store_true", help="entities named in the same frames")
    graph.add_argument("--predicate", metavar="NAME", help="only facts with this predicate")
    graph.add_argument(
        "--direction", choices=DIRECTIONS, default="both", help="out: from subject to object (both)"
    )
    graph.add_argument("--valid-at", metavar="TIME", help="only facts true at this time")
    graph.add_argument("--plot", metavar="FILE", help="draw the neighbourhood, as .svg or .png")
    add_count(graph)
