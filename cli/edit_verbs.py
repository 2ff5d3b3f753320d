"""The parsers of supersede, delete and tag."""

from .verb_parser import Adding, add_filters, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add supersede, delete and tag."""
    supersede = add_verb(
        adding,
        "supersede",
        "replace a frame by a new text",
        "edit.run_supersede",
        reasons=True,
        examples=("supersede 12 We chose HNSW: recall under 5 ms.", "supersede 12 --by 15"),
    )
    supersede.add_argument("old", type=identifier, metavar="ID", help="id of the outdated frame")
    supersede.add_argument("text", nargs="*", help="the new text")
    supersede.add_argument(
        "--by", type=identifier, metavar="ID", help="id of an existing frame, instead of a text"
    )

    delete = add_verb(
        adding,
        "delete",
        "close frames; they stay readable in the past",
        "edit.run_delete",
        reasons=True,
        examples=("delete 12", "delete 12 13", "delete --tag draft --kind note"),
    )
    delete.add_argument(
        "ids", nargs="*", type=identifier, metavar="ID", help="ids of frames, as in search and log"
    )
    add_filters(delete, closed=False)

    tag = add_verb(
        adding,
        "tag",
        "name a point in time, or list the names",
        "edit.run_tag",
        writes=True,
        lists=True,
        examples=("tag before-the-move", "tag first --at HEAD~3", "tag"),
    )
    tag.add_argument("name", nargs="?", metavar="NAME", help="starts with a letter")
