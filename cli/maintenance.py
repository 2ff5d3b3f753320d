"""The verbs of maintenance: verify, rebuild, checkpoint, backup, doctor and repair."""

from argparse import Namespace
from typing import Final

from cerata.engine.errors import NotFound
from cerata.engine.remembered import RememberedHead
from cerata.memory.maintenance.doctor import Cure, Diagnosis, diagnose
from cerata.memory.maintenance.repair import repair
from cerata.memory.values.words import counted

from .open_handles import holders_of
from .output import Output
from .store_options import changing, file_of, reading
from .verb_parser import did_you_mean


def run_verify(options: Namespace, output: Output) -> int:
    """Verify the file, and print every damage and divergence."""
    # Before the file is opened: an unreadable head is a mistake of the command.
    if options.head is not None:
        RememberedHead.parse(options.head)
    with reading(options) as store, output.progress("verifying", store.head.seq) as steps:
        verification = store.verify(steps.stand, against=options.head)
    for problem in verification.log.problems:
        output.notice(("damaged: ", "bold red"), str(problem))
    for divergence in verification.divergences:
        output.notice(("diverges: ", "bold red"), str(divergence))
    for line in verification.missing:
        output.notice(("missing: ", "yellow"), line)
    for note in verification.notes:
        output.notice(("note: ", "yellow"), note)
    check = verification.against
    code = 0 if verification.ok else 1
    if check is not None and check.diverged is not None:
        output.notice((f"{check.outcome}: ", "bold red"), str(check.diverged), lines=6)
        code = check.diverged.exit_code
    elif check is not None and check.outcome == "unreadable":
        why = f"events up to the head at event {check.head.seq:,} cannot be read"
        output.notice(("not compared: ", "yellow"), why)
    if verification.ok:
        names = ", ".join(sorted(verification.digests))
        output.parts(
            ("ok: ", "bold green"),
            f"{counted(verification.log.events, 'event')}, every hash recomputed",
        )
        output.notice(f"{names} equal their replay", indent=4)
        if check is not None:
            output.line(f"    the head at event {check.head.seq:,} agrees")
    elif verification.log.problems or verification.divergences or verification.notes:
        output.line("Run 'cerata doctor' for the repair.", style="dim")
    output.result(verification.to_dict())
    return code


def run_rebuild(options: Namespace, output: Output) -> int:
    """Fold projections from the log again."""
    with changing(options, output) as store, output.progress("rebuilding", store.head.seq) as steps:
        valid_names = sorted(store.digests())
        names = list(options.names) or valid_names
        for name in names:
            if name not in valid_names:
                near = did_you_mean(name, valid_names)
                meant = f"Did you mean {near!r}? " if near else ""
                raise NotFound(
                    f"There is no projection {name!r}",
                    where=store.path,
                    remedy=f"{meant}Use one of {', '.join(valid_names)}.",
                )
        result = store.rebuild(names, steps.stand, workers=options.workers)
        for name in names:
            output.line(f"{name:<10} rebuilt from {counted(result.seq, 'event')}")
        for divergence in result.divergences:
            output.notice(("replaced: ", "yellow"), str(divergence))
        facts = result.to_dict()
        output.result(
            {
                "file": store.path,
                "head": result.seq,
                "rebuilt": facts["digests"],
                "divergences": facts["divergences"],
                "unmatched": facts["unmatched"],
            }
        )
    return 0


def run_checkpoint(options: Namespace, output: Output) -> int:
    """Save the state of every projection."""
    with changing(options, output) as store:
        store.checkpoint()
        facts = store.info()
        saved = facts["checkpoints"]
        assert isinstance(saved, dict)
        for name, seq in saved.items():
            output.line(f"{name:<14} saved at event {seq:,}")
        output.result({"file": store.path, "head": facts["head"], "checkpoints": saved})
    return 0


def run_backup(options: Namespace, output: Output) -> int:
    """Copy the memory into a new file."""
    with reading(options) as store:
        head = store.head
        store.backup(options.to)
        output.line(f"{options.to} has {counted(head.seq, 'event')}, every hash checked")
        output.result(
            {
                "file": store.path,
                "to": options.to,
                "head": head.seq,
                "chain": head.chain.hex(),
                "root": head.root.hex(),
            }
        )
    return 0


_CURES: Final = {
    Cure.OPENING: "Run 'cerata repair'; the next write repairs the file, too.",
    Cure.REBUILDING: "Run 'cerata repair' to rebuild the index from the log.",
    Cure.COPYING: "Run 'cerata repair --to NEW.cera' to copy the events into a sound file.",
    Cure.LOSS: "Copy the file first. Then restore a backup, or keep the events before the damage: "
    "'cerata repair --to NEW.cera --drop-damaged'.",
}


def run_doctor(options: Namespace, output: Output) -> int:
    """Explain faults, and propose repairs; exit with 1 if a repair is needed."""
    file = file_of(options)
    with output.progress("diagnosing", 1) as steps:
        diagnosis = diagnose(
            file,
            lock_timeout=options.lock_timeout,
            environment=options.environment,
            progress=steps.stand,
        )
    _print_diagnosis(diagnosis, output)
    holders = holders_of(file)
    if holders:
        output.line(f"open in: {', '.join(map(str, holders))}", style="dim")
    output.result({**diagnosis.to_dict(), "holders": [holder.to_dict() for holder in holders]})
    return 0 if diagnosis.healthy else 1


def _print_diagnosis(diagnosis: Diagnosis, output: Output) -> None:
    if diagnosis.healthy:
        output.parts(
            ("healthy: ", "bold green"),
            f"{diagnosis.file}, {counted(diagnosis.events, 'event')}",
        )
    for finding in diagnosis.findings:
        cured = finding.cure is not Cure.NOTHING
        colour = "bold red" if finding.cure is Cure.LOSS else "yellow" if cured else "dim"
        output.notice(("found: ", colour), finding.what)
        output.notice((finding.why, "dim"), indent=4)
        if cured:
            output.notice(f"→ {_CURES[finding.cure]}", indent=4)
    if diagnosis.of(Cure.LOSS):
        output.line(
            f"{counted(diagnosis.readable, 'event')} before the damage, "
            f"{diagnosis.beyond:,} readable after it"
        )


def run_repair(options: Namespace, output: Output) -> int:
    """Repair the file, and diagnose it again."""
    with output.progress("repairing", 1) as steps:
        repaired = repair(
            file_of(options),
            to=options.to,
            drop_damaged=options.drop_damaged,
            lock_timeout=options.lock_timeout,
            environment=options.environment,
            progress=steps.stand,
        )
    for line in repaired.done:
        output.notice(line)
    if not repaired.done:
        nothing = "nothing to repair" if repaired.after.healthy else "nothing to repair in place"
        output.line(f"There is {nothing}.")
    _print_diagnosis(repaired.after, output)
    output.result(repaired.to_dict())
    return 0 if repaired.after.healthy else 1
