"""The verb of forks: fork, and the differences of two forks."""

from argparse import Namespace

import msgspec

import cerata
from cerata.engine.errors import InvalidInput
from cerata.engine.json_value import JsonValue
from cerata.memory.store import Store
from cerata.memory.values.words import counted

from .history import print_diff
from .output import Output
from .pair_options import scope_of
from .store_options import changing, packs_of, reading


def run_fork(options: Namespace, output: Output) -> int:
    """Write a fork, compare with one, or apply one."""
    if sum(value is not None for value in (options.to, options.compare, options.apply)) != 1:
        raise InvalidInput(
            "fork takes one of NEW, --compare FORK and --apply FORK",
            remedy="Pass the path of a new file, or of a fork with one of the two options.",
        )
    if options.yes and options.apply is None:
        raise InvalidInput("--yes belongs to --apply", remedy="Remove it, or pass --apply FORK.")
    if options.to is not None:
        return _fork(options, output)
    if options.compare is not None:
        return _compare(options, output)
    return _apply(options, output)


def _fork(options: Namespace, output: Output) -> int:
    with (
        reading(options) as store,
        output.progress("forking", 0) as steps,
        store.fork(options.at, options.to, progress=steps.stand) as fork,
    ):
        branch = fork.branches()[-1]
        output.line(f"{options.to} continues {store.path} from event {branch.parent:,}")
        output.line(f"branch {branch.id.hex()}", style="dim")
        output.result({"file": store.path, "to": options.to, "branch": branch.to_dict()})
    return 0


def _compare(options: Namespace, output: Output) -> int:
    with reading(options) as store, _other(options, options.compare) as fork:
        diff = store.compare(fork)
        for name, side in ((store.path, diff.here), (fork.path, diff.there)):
            output.line(f"{name} since event {diff.point:,}", style="bold")
            print_diff(side, output)
            output.line()
        here, there = (
            {**side.to_dict(), "summary": side.summary} for side in (diff.here, diff.there)
        )
        output.result(
            {
                "file": store.path,
                "fork": fork.path,
                "point": diff.point,
                "here": here,
                "there": there,
            }
        )
    return 0


def _apply(options: Namespace, output: Output) -> int:
    opened = changing(options, output) if options.yes else reading(options)
    with opened as store, _other(options, options.apply) as fork:
        drafts = fork.drafts_after(store)
        rows = [draft.to_dict() for draft in drafts]
        answer: dict[str, JsonValue] = {"file": store.path, "fork": fork.path, "drafts": [*rows]}
        if not options.yes:
            for row in rows:
                output.line(msgspec.json.encode(row).decode())
            output.result({**answer, "appended": None})
            return 0
        receipt = store.apply(fork)
        done = "appended" if receipt.added else "were appended before"
        output.line(f"{counted(len(drafts), 'event')} of {fork.path} {done}")
        output.result({**answer, "appended": [*receipt.seqs] if receipt.added else []})
    return 0


def _other(options: Namespace, path: str) -> Store:
    return cerata.open(
        path,
        mode="r",
        scope=scope_of(options),
        shared=options.shared,
        lock_timeout=options.lock_timeout,
        environment=options.environment,
        packs=packs_of(options),
    )
