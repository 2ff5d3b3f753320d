"""The verbs of upkeep: verify, backup, maintain, compact and doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.late import late
from cerata.engine.verbs import ACTOR, EMBEDDER, Arg, Option, Verb

from .files import holders_of
from .options import (
    PROJECTIONS,
    actor_of,
    changing,
    check_goes_with,
    file_of,
    reading,
    scope_of,
    where_of,
)
from .parser import did_you_mean
from .shared_options import FILTERS
from .verbs import packs_named

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from cerata.engine.events import JsonValue
    from cerata.memory import store as memory_store
    from cerata.memory.compaction import Compaction
    from cerata.memory.maintenance.doctor import Diagnosis
    from cerata.memory.values import options as value_options
    from cerata.retrieval.embedders import endpoint, minilm
    from cerata.retrieval.embedders.embedder import Embedder
    from cerata.retrieval.embedders.identity import VectorType

    from .output import Output
else:
    memory_store = late("cerata.memory.store")
    value_options = late("cerata.memory.values.options")
    minilm = late("cerata.retrieval.embedders.minilm")
    endpoint = late("cerata.retrieval.embedders.endpoint")

_PARTS: Final = ("checkpoint", "rebuild", "sweep", "embed")

VERBS: Final = (
    Verb(
        "verify",
        "file",
        "recompute every hash and index, and compare",
        "cerata.cli.upkeep:run_verify",
        (
            Option(
                "--head SEQ:ROOT", "compare with a head that 'cerata info --head' printed before"
            ),
        ),
        ("", "--json | jq .ok", "--head 8123:9f3c…"),
        page="reliability.md",
    ),
    Verb(
        "backup",
        "file",
        "copy the memory into a new file, even during writes",
        "cerata.cli.upkeep:run_backup",
        (Arg("to", "path of the new file", metavar="NEW"),),
        ("brain-2026-03-01.cera",),
    ),
    Verb(
        "maintain",
        "file",
        "do the upkeep that is due, for some seconds, or one part of it",
        "cerata.cli.upkeep:run_maintain",
        (
            Option(
                "--only",
                "checkpoint: save the indexes, for a quick open; rebuild: fold them from the log "
                "again; sweep: close the expired frames; embed: embed the current frames that "
                "have no vector",
                choices=_PARTS,
            ),
            Arg(
                "names", f"with rebuild: any of {', '.join(PROJECTIONS)} (all)", "*", metavar="NAME"
            ),
            Option("--budget SECONDS", "time to use (1); not with --only", type=float),
            Option("--workers N", "with rebuild: processes that fold the events (1)", type=int),
            Option("--int8", "with embed: store a byte for each number"),
            Option("--tokens", "with embed and MiniLM: a vector for each token, too"),
            Option("--url URL", "with embed: URL of an endpoint (MiniLM on this machine)"),
            Option("--model MODEL", "with --url: the model's name"),
            Option("--revision REVISION", "with --url: your name for the model's state"),
            Option("--dimension COUNT", "with --url: numbers in a vector", type=int),
            Option("--key-variable NAME", "with --url: environment variable with the key"),
            EMBEDDER,
            *FILTERS,
            ACTOR,
        ),
        (
            "",
            "--budget 0.5",
            "--only checkpoint",
            "--only rebuild fulltext --workers 2",
            "--only sweep --scope user=ann",
            "--only embed --embedder minilm-tokens --tag people",
            "--only embed --int8",
            "--only embed --url U --model m --revision a --dimension 9",
        ),
        page="compaction.md",
    ),
    Verb(
        "compact",
        "file",
        "rewrite the file without dead space, during writes",
        "cerata.cli.upkeep:run_compact",
        (
            Option(
                "--horizon BASIS",
                "give up the contents of frames that were deleted or superseded by then",
            ),
            Option("--dry-run", "only estimate the gain"),
        ),
        ("--dry-run", "", "--horizon HEAD", "--horizon '90 days ago' --dry-run --json | jq .after"),
        page="compaction.md",
    ),
    Verb(
        "doctor",
        "file",
        "diagnose a file and propose repairs, or perform them",
        "cerata.cli.upkeep:run_doctor",
        (
            Option("--repair", "perform the repairs; without it nothing is written"),
            Option(
                "--to NEW", "with --repair: copy the readable events, and leave the file unchanged"
            ),
            Option("--drop-damaged", "with --to: leave out unreadable events and all after them"),
        ),
        (
            "",
            "-f brain.cera --json | jq .healthy",
            "--repair",
            "--repair --to saved.cera",
            "--repair --to saved.cera --drop-damaged",
        ),
        scoped=False,
        page="reliability.md",
    ),
)


def run_verify(options: Namespace, output: Output) -> int:
    """Verify the file, and print every damage and divergence."""
    from cerata.engine.remembered import RememberedHead
    from cerata.engine.words import counted

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
        output.line("Run 'cerata file doctor' for the repair.", style="dim")
    output.result(verification.to_dict())
    return code


def _rebuild(options: Namespace, output: Output) -> int:
    """Fold projections from the log again."""
    from cerata.engine.words import counted

    with changing(options, output) as store, output.progress("rebuilding", store.head.seq) as steps:
        valid_names = sorted(store.stream.digests())
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
        result = store.upkeep.rebuild(
            names, steps.stand, workers=1 if options.workers is None else options.workers
        )
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


def _save_checkpoint(options: Namespace, output: Output) -> int:
    """Save the state of every projection."""
    with changing(options, output) as store:
        store.checkpoint()
        facts = store.upkeep.info()
        saved = facts["checkpoints"]
        assert isinstance(saved, dict)
        for name, seq in saved.items():
            output.line(f"{name:<14} saved at event {seq:,}")
        output.result({"file": store.path, "head": facts["head"], "checkpoints": saved})
    return 0


def run_backup(options: Namespace, output: Output) -> int:
    """Copy the memory into a new file."""
    from cerata.engine.words import counted

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


_CURES: Final[Mapping[str, str]] = {
    "opening": "Run 'cerata file doctor --repair'; the next write repairs the file, too.",
    "rebuilding": "Run 'cerata file doctor --repair' to rebuild the index from the log.",
    "copying": "Run 'cerata file doctor --repair --to NEW.cera' to copy the events into a sound "
    "file.",
    "loss": "Copy the file first. Then restore a backup, or keep the events before the damage: "
    "'cerata file doctor --repair --to NEW.cera --drop-damaged'.",
}


def run_doctor(options: Namespace, output: Output) -> int:
    """Explain faults, and propose or perform repairs; exit with 1 if a repair is needed."""
    from cerata.memory.maintenance.doctor import diagnose

    if options.repair:
        return _repair(options, output)
    repairing = {"--to": options.to, "--drop-damaged": options.drop_damaged}
    check_goes_with("--repair", repairing, is_passed=False)
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
    from cerata.engine.words import counted
    from cerata.memory.maintenance.doctor import Cure

    if diagnosis.healthy:
        output.parts(
            ("healthy: ", "bold green"), f"{diagnosis.file}, {counted(diagnosis.events, 'event')}"
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


def _repair(options: Namespace, output: Output) -> int:
    """Repair the file, and diagnose it again."""
    from cerata.memory.maintenance.doctor import repair

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


def run_compact(options: Namespace, output: Output) -> int:
    """Write a new file without dead space."""
    with changing(options, output) as store, output.progress("compacting", store.head.seq) as steps:
        result = store.upkeep.compact(
            horizon=options.horizon, dry_run=options.dry_run, progress=steps.stand
        )
        _print_compaction(result, output)
        output.result({"file": store.path, **result.to_dict()})
    return 0


def _maintain(options: Namespace, output: Output) -> int:
    """Do the upkeep that is due, for some seconds."""
    with changing(options, output) as store, output.progress("upkeep", store.head.seq) as steps:
        result = store.upkeep.maintain(
            1.0 if options.budget is None else options.budget, progress=steps.stand
        )
        if result.checkpointed:
            output.line("saved a checkpoint")
        if result.compaction is not None and result.compaction.done:
            _print_compaction(result.compaction, output)
        if result.due:
            output.line("Work remains: run 'cerata file maintain' again.", style="dim")
        elif not result.checkpointed and result.compaction is None:
            output.line("Nothing is due.")
        output.result({"file": store.path, **result.to_dict()})
    return 0


def _print_compaction(result: Compaction, output: Output) -> None:
    from cerata.engine.words import bytes_text, counted

    sizes = f"{bytes_text(result.before)} to {bytes_text(result.after)}"
    stays = not result.done and not result.dropped and result.after >= result.before
    if result.done:
        output.parts(("compacted: ", "bold green"), f"{counted(result.events, 'event')}, {sizes}")
    elif stays:
        output.line(f"Nothing to gain: the file stays at {bytes_text(result.before)}.")
    else:
        output.line(f"The file would shrink from {sizes}, about.")
    if result.horizon is not None:
        verb = "gave up" if result.done or stays else "would give up"
        output.line(
            f"{verb} the contents of {counted(result.dropped, 'event')}; "
            f"their hashes stay (horizon: event {result.horizon:,})",
            style="dim",
        )


_NEEDED: Final = ("model", "revision", "dimension")
"""The identity of an endpoint's model, which the endpoint cannot report."""


def _embed(options: Namespace, output: Output) -> int:
    """Embed frames without a vector in batches; an interrupted run can be continued."""
    from cerata.engine.words import counted

    where = where_of(options)
    embedder = _embedder(options)
    # The file must exist; without options its remembered embedder goes on.
    options.embedder = None
    with reading(options) as store:
        before = store.embeddings.used()
        if embedder is None and store.embeddings.embedder is None:
            embedder = minilm.MiniLMEmbedder()
    with (
        memory_store.open_store(
            file_of(options),
            scope=scope_of(options),
            actor=actor_of(options),
            embedder=embedder,
            environment=options.environment,
            packs=packs_named(options.pack),
            options=value_options.OpenOptions(
                shared=options.shared, lock_timeout=options.lock_timeout
            ),
        ) as store,
        output.progress("embedding", 0) as steps,
    ):
        embedded = store.embeddings.fill(
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
    from cerata.retrieval.embedders.built_in import built_in

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
        return minilm.MiniLMEmbedder(dtype=dtype, token_dimension=128 if options.tokens else None)
    if options.embedder is not None:
        raise InvalidInput("--embedder does not go with --url", remedy="Remove one of the two.")
    if options.tokens:
        raise InvalidInput("--tokens does not go with --url", remedy="Remove --tokens or --url.")
    missing = [name for name in _NEEDED if name not in named]
    if missing:
        raise InvalidInput(f"--url needs --{missing[0]}", remedy=f"Add --{missing[0]}.")
    return endpoint.EndpointEmbedder(
        options.url,
        model=options.model,
        revision=options.revision,
        dimension=options.dimension,
        dtype=dtype,
        key_variable=options.key_variable,
    )


def _sweep(options: Namespace, output: Output) -> int:
    """Close the expired frames."""
    from cerata.engine.words import counted

    with changing(options, output) as store:
        receipt = store.upkeep.sweep()
        output.line(f"closed {counted(len(receipt.deleted), 'expired frame')}")
        for notice in receipt.notices:
            output.warn(notice)
        deleted: list[JsonValue] = [*receipt.deleted]
        output.result({"file": store.path, **receipt.to_dict(), "deleted": deleted})
    return 0


def run_maintain(options: Namespace, output: Output) -> int:
    """Do the upkeep that is due, or the part that ``--only`` names."""
    only: str | None = options.only
    rebuild = {"NAME": options.names, "--workers": options.workers}
    embed = {
        "--int8": options.int8,
        "--tokens": options.tokens,
        "--url": options.url,
        "--model": options.model,
        "--revision": options.revision,
        "--dimension": options.dimension,
        "--key-variable": options.key_variable,
        "--embedder": options.embedder,
        "--tag": options.tag,
        "--kind": options.kind,
        "--role": options.role,
        "--absent": options.absent,
        "--where": options.where,
    }
    check_goes_with("all upkeep", {"--budget": options.budget}, is_passed=only is None)
    check_goes_with("--only rebuild", rebuild, is_passed=only == "rebuild")
    check_goes_with("--only embed", embed, is_passed=only == "embed")
    if only is None:
        return _maintain(options, output)
    parts = {"checkpoint": _save_checkpoint, "rebuild": _rebuild, "sweep": _sweep, "embed": _embed}
    return parts[only](options, output)
