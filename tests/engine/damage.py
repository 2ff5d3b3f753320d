"""What a damaged file does to whoever opens it: the outcomes that the damage sweeps count."""

from cerata.engine.errors import CerataError, Corrupt, Unsupported
from cerata.engine.log_file.recovery import RecoveryReport
from cerata.engine.verify import verify_log

from .specimen import Place, Specimen
from .words import Disk, stored

WRONG = ("SILENT", "OTHER DATA", "NO PLACE", "LOST", "WRITTEN TO")
HARMLESS = ("end", "padding")
"""Where nothing stands that anybody reads: a changed bit may change nothing."""


def outcome(specimen: Specimen, data: bytearray) -> str:
    """Open a damaged file as a reader does, read everything, verify: what is found, and how."""
    disk = Disk.holding(data)
    try:
        log = disk.open(mode="r")
    except (Corrupt, Unsupported) as error:
        return "refused at open" if placed(error) else "NO PLACE"
    try:
        events = stored(log.read())
        there = [one for one in specimen.attached if one[0] <= len(events)]
        attached = [(seq, named, log.attachment(seq, named)) for seq, named, _ in there]
        head = log.head.chain, log.head.root
    except Corrupt as error:
        return "refused at read" if placed(error) else "NO PLACE"
    problems = verify_log(log).problems
    if (events, attached) == (specimen.events[: len(events)], there):
        if problems:
            return "found by verify"
        if len(events) < len(specimen.events):
            return "ambiguous" if log.report.ambiguous_tail else "SILENT"
        if head == (specimen.chain, specimen.root):
            return "reported" if log.report != RecoveryReport() else "harmless"
        return "SILENT"
    # Whatever verify says later: somebody was given what was never written.
    return "OTHER DATA" if problems else "SILENT"


def is_right(found: str, place: Place | None) -> bool:
    """Tell whether what a flipped bit of a closed file led to is what may come of it."""
    if place and place.name not in HARMLESS and found == "harmless":
        return False
    return found not in (*WRONG, "ambiguous")


def placed(error: CerataError) -> bool:
    """Tell whether an error names the place and what to do."""
    return bool(error.where) and bool(error.remedy)
