"""The parsers of verify, rebuild, checkpoint, backup, doctor and repair."""

from .choices import PROJECTIONS
from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add verify, rebuild, checkpoint, backup, doctor and repair."""
    verify = add_verb(
        adding,
        "verify",
        "recompute every hash and index, and compare",
        "maintenance.run_verify",
        examples=("verify", "verify --json | jq .ok", "verify --head 8123:9f3c…"),
    )
    verify.add_argument(
        "--head", metavar="SEQ:ROOT", help="compare with a head that 'cerata head' printed before"
    )
    rebuild = add_verb(
        adding,
        "rebuild",
        "rebuild indexes from the log",
        "maintenance.run_rebuild",
        examples=("rebuild", "rebuild fulltext", "rebuild --workers 2"),
    )
    rebuild.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(PROJECTIONS)} (all)"
    )
    rebuild.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that fold the events (1)"
    )
    add_verb(
        adding,
        "checkpoint",
        "save the indexes, for a quick open",
        "maintenance.run_checkpoint",
        examples=("checkpoint",),
    )
    backup = add_verb(
        adding,
        "backup",
        "copy the memory into a new file, even during writes",
        "maintenance.run_backup",
        examples=("backup brain-2026-03-01.cera",),
    )
    backup.add_argument("to", metavar="NEW", help="path of the new file")
    add_verb(
        adding,
        "doctor",
        "diagnose a file and propose repairs; write nothing",
        "maintenance.run_doctor",
        scoped=False,
        examples=("doctor", "doctor -f brain.cera --json | jq .healthy"),
    )
    repair_verb = add_verb(
        adding,
        "repair",
        "perform the repairs that doctor proposes",
        "maintenance.run_repair",
        scoped=False,
        examples=("repair", "repair --to saved.cera", "repair --to saved.cera --drop-damaged"),
    )
    repair_verb.add_argument(
        "--to", metavar="NEW", help="copy the readable events, and leave the file unchanged"
    )
    repair_verb.add_argument(
        "--drop-damaged",
        action="store_true",
        help="with --to: leave out unreadable events and all after them",
    )
