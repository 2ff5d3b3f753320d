"""The parsers of update, restore, sweep and values."""

from .verb_parser import Adding, add_filters, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add update, restore, sweep and values."""
    update = add_verb(
        adding,
        "update",
        "change the title, tags, metadata or expiry of a frame",
        "versions.run_update",
        reasons=True,
        examples=("update 12 --tag infra --tag port", "update 12 --title Ports --expires never"),
    )
    update.add_argument("id", type=identifier, metavar="ID", help="id of a current frame")
    update.add_argument("--title", help="the title; '' for none")
    update.add_argument("--tag", action="append", help="a tag, of all that it keeps; '' for none")
    update.add_argument(
        "--metadata",
        action="append",
        metavar="NAME=VALUE",
        help="metadata, or NAME:=JSON, of all that it keeps; '' for none",
    )
    update.add_argument(
        "--expires", metavar="TIME", help="the time of expiry ('tomorrow'), or never"
    )

    restore = add_verb(
        adding,
        "restore",
        "bring back a deleted frame or an older version",
        "versions.run_restore",
        reasons=True,
        examples=("restore 12", "restore 12 --expires never"),
    )
    restore.add_argument("id", type=identifier, metavar="ID", help="id of a closed frame")
    restore.add_argument(
        "--expires", metavar="TIME", help="the time of expiry ('tomorrow'), or never"
    )

    add_verb(
        adding,
        "sweep",
        "close the expired frames",
        "versions.run_sweep",
        writes=True,
        examples=("sweep", "sweep --scope user=ann"),
    )

    values = add_verb(
        adding,
        "values",
        "count the frames with each tag, kind, role or other value",
        "versions.run_values",
        lists=True,
        examples=("values tag", "values uri --prefix docs/ --at HEAD~3", "values metadata.lang"),
    )
    values.add_argument(
        "field",
        metavar="FIELD",
        help="tag, label, kind, role, track, title, uri, metadata or metadata.NAME",
    )
    values.add_argument("--prefix", default="", help="only values that start with it")
    add_filters(values, closed=False)
