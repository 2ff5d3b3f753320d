"""The verb that learns the weights of a profile."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cerata.cli.files import check_new, new_file, opened_input
from cerata.cli.options import profile_from, reading, view_of
from cerata.engine.errors import InvalidInput
from cerata.engine.words import counted

from .judged_lines import LINE_SIZE_MAX
from .tuning import Tuning, tune

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Generator, Iterator

    from cerata.cli.output import Output
    from cerata.retrieval.ranking.profile import Profile


def run_tune(options: Namespace, output: Output) -> int:
    """Learn weights, print their gain on held-out queries, and write a profile that gains."""
    if (options.judgements is None) != options.recalls:
        raise InvalidInput(
            "tune needs a file of judgements or --recalls, and not both",
            remedy="Pass JUDGEMENTS, or --recalls for the recorded recalls.",
        )
    if options.to is not None:
        # Before the work, which takes two searches for each query.
        check_new(options.to)
    profile = profile_from(options.profile)
    with (
        reading(options) as store,
        _lines(options.judgements) as lines,
        output.progress("asking", 0) as steps,
    ):
        tuning = tune(
            view_of(store, options),
            lines,
            profile=profile,
            name=options.name,
            source=options.judgements or "",
            progress=steps.stand,
        )
    for notice in tuning.notices:
        output.warn(notice)
    _print_tuning(tuning, output)
    to: str | None = options.to if tuning.improves or options.anyway else None
    if to is not None:
        _write(tuning.profile, to, store.path)
    _print_end(tuning, to, output)
    output.result(
        {**tuning.to_dict(), "improves": tuning.improves, "sure": tuning.is_sure, "to": to}
    )
    return 0 if tuning.improves or to is not None else 1


@contextmanager
def _lines(name: str | None) -> Generator[Iterator[bytes] | None]:
    if name is None:
        yield None
        return
    remedy = "Pass a file of judgements, a JSON object on each line."
    with opened_input(name, remedy) as (file, _):
        yield iter(lambda: file.readline(LINE_SIZE_MAX + 1), b"")


def _print_tuning(tuning: Tuning, output: Output) -> None:
    queries = "query" if tuning.questions == 1 else "queries"
    output.line(
        f"{tuning.questions:,} {queries} in {counted(tuning.groups, 'group')}, "
        f"each measured without its group"
    )
    output.line("           in use  learned  change            95 %  better  worse", style="dim")
    for gain in tuning.gains:
        output.line(
            f"{gain.metric:<8} {100 * gain.before:8.1f} {100 * gain.after:8.1f} "
            f"{100 * gain.change:+7.1f}  [{100 * gain.low:+5.1f}, {100 * gain.high:+5.1f}] "
            f"{gain.better:7,} {gain.worse:6,}"
        )
    profile = tuning.profile
    weights = {**profile.weights, **profile.signals}
    parts = ", ".join(f"{name} {weight}" for name, weight in weights.items())
    output.line(f"in use: {tuning.base}")
    output.notice(f"{profile.label}: {parts}", lines=6)


def _print_end(tuning: Tuning, to: str | None, output: Output) -> None:
    if not tuning.improves:
        written = "; nothing was written" if to is None else ""
        output.line(f"The learned profile is no better on held-out queries{written}.")
    elif not tuning.is_sure:
        output.line("The interval of nDCG@10 contains 0, so the gain may be chance.")
    if to is not None:
        output.line(f"Use the profile with --profile {to}")
    elif tuning.improves:
        output.line("Pass --to FILE to keep the profile.", style="dim")


def _write(profile: Profile, name: str, memory: str) -> None:
    text = json.dumps(profile.to_dict(), indent=2)
    with new_file(name, memory) as file:
        file.write(f"{text}\n".encode())
