"""The parsers of remember and put."""

from argparse import ArgumentParser

from .verb_parser import Adding, add_embedder, add_verb


def add_verbs(adding: Adding) -> None:
    """Add remember and put."""
    _add_remember(adding)
    _add_put(adding)


def _add_remember(adding: Adding) -> None:
    verb = add_verb(
        adding,
        "remember",
        "remember files and folders, each once",
        "remember.run_remember",
        writes=True,
        examples=(
            "remember notes/ todo.md",
            "remember src --include '*.{py,md}' --exclude tests",
            "remember notes/ --dry-run",
            "remember - --tag meeting < minutes.txt",
        ),
    )
    verb.add_argument(
        "paths", nargs="+", metavar="PATH", help="a file, a folder, or - for standard input"
    )
    _add_tag_and_expires(verb)
    verb.add_argument(
        "--include", action="append", default=[], metavar="PATTERN", help="only matching files"
    )
    verb.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="no matching files"
    )
    verb.add_argument(
        "--no-default-excludes",
        action="store_true",
        help="include hidden names, node_modules and the like",
    )
    verb.add_argument(
        "--dry-run", action="store_true", help="print the outcome of each file; write nothing"
    )
    add_embedder(verb)
    verb.add_argument(
        "--embed-limit",
        type=_embed_limit,
        default=256,
        metavar="N",
        help="most passages of a log or table with vectors, or all (256)",
    )
    verb.add_argument("--jsonl", action="store_true", help="print one JSON object per file")
    verb.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print every file, not only replaced and skipped files",
    )


def _embed_limit(text: str) -> int | None:
    return None if text == "all" else int(text)


def _add_put(adding: Adding) -> None:
    verb = add_verb(
        adding,
        "put",
        "store a text unchanged",
        "put.run_put",
        writes=True,
        examples=(
            "put The staging database listens on port 5433. --tag infra",
            "put 'What must I not eat?' --kind message --role user --track chat",
            "put 'The bridge opens.' --date 2026-05-01 --metadata 'lanes:=4'",
            "put - --title Minutes < minutes.txt",
        ),
    )
    verb.add_argument("text", nargs="+", help="the words, or - for standard input")
    add_embedder(verb)
    verb.add_argument("--title", help="the title, which is searched, too")
    verb.add_argument("--kind", default="text", help="the structure, such as message (text)")
    verb.add_argument("--role", help="the speaker, such as user")
    verb.add_argument("--track", metavar="NAME", help="the conversation or other line")
    verb.add_argument("--uri", help="the address of the text's source")
    verb.add_argument(
        "--replace", action="store_true", help="supersede the current frame with this --uri"
    )
    _add_tag_and_expires(verb)
    verb.add_argument("--label", action="append", default=[], help="a label; repeat for several")
    verb.add_argument(
        "--metadata",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="metadata, or NAME:=JSON for a number or list; repeat for several",
    )
    verb.add_argument(
        "--date",
        action="append",
        default=[],
        metavar="TIME",
        help="a date that the text is about; repeat for several; default those it names",
    )


def _add_tag_and_expires(verb: ArgumentParser) -> None:
    verb.add_argument("--tag", action="append", default=[], help="a tag; repeat for several")
    verb.add_argument(
        "--expires",
        metavar="TIME",
        help="leave what is written out of reads from then on, such as 'in 3 days'",
    )
