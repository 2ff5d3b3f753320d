"""The forms of rerun that repeat recorded recalls: under other settings, or one as it was."""

import tomllib
from argparse import Namespace
from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.memory.tuning.recall_comparison import (
    ChunkedAgain,
    RecallChange,
    compare_recalls,
)
from cerata.memory.tuning.recall_rerun import rerun_recall
from cerata.memory.tuning.recall_settings import RecallSettings
from cerata.memory.values.words import clipped, counted

from .input_files import opened_input
from .output import Output
from .store_options import reading, view_of

_SIZE_MAX: Final = 1 << 20
"""Bytes of a file of settings: far more than any."""

_SHOWN_MAX: Final = 8
"""Ids of a line; --json has all."""


def run_comparison(options: Namespace, output: Output) -> int:
    """Print the recorded recalls whose contexts differ under two settings, and the totals."""
    if not options.compare or not 1 <= len(options.settings) <= 2:
        raise InvalidInput(
            "rerun needs --with FILE, once or twice, and --compare",
            remedy="Pass --with policy.toml --compare.",
        )
    settings = [_settings_in(name) for name in options.settings]
    before = settings[0] if len(settings) > 1 else None
    with reading(options) as store, output.progress("asking", 0) as steps:
        comparison = compare_recalls(
            view_of(store, options), settings[-1], before, progress=steps.stand
        )
    for change in comparison.differing:
        _print_change(change, output)
    totals = comparison.totals
    output.parts(
        (f"{counted(len(comparison.recalls), 'recall')}: ", "bold"),
        f"{totals['same']} same, {totals['different']} different; {totals['added']} added, "
        f"{totals['dropped']} dropped, {totals['moved']} moved; tokens "
        f"{totals['tokens_before']:,} → {totals['tokens_after']:,}",
    )
    chunking = comparison.chunking
    is_without_vectors = chunking is not None and chunking.without_vectors > 0
    if chunking is not None:
        _print_chunking(chunking, output)
    unlike = len(comparison.recalls) - sum(change.repeated for change in comparison.recalls)
    if before is None and unlike and not is_without_vectors:
        output.warn(
            f"{counted(unlike, 'recall')} now shows other entries than were recorded, under the "
            "recorded settings"
        )
    if comparison.skipped:
        output.warn(
            f"{counted(comparison.skipped, 'recall')} skipped: a filter, an unknown profile, or "
            "scores of a model for other passages"
            if chunking is not None
            else f"{counted(comparison.skipped, 'recall')} skipped: a filter, or an unknown profile"
        )
    output.result(comparison.to_dict())
    return 0


def _print_chunking(chunking: ChunkedAgain, output: Output) -> None:
    output.line(f"{counted(chunking.split, 'document')} split at other places")
    if chunking.kept:
        output.warn(
            f"{counted(chunking.kept, 'document')} kept its recorded chunks: one is missing, or "
            "was changed by itself"
        )
    if chunking.without_vectors:
        output.warn(
            f"{counted(chunking.without_vectors, 'passage')} without a vector, because the "
            "memory's embedder cannot run here; both sides used words alone"
        )


def run_recall_again(options: Namespace, output: Output) -> int:
    """Ask a recorded recall again at its basis, and print "same" or the first difference."""
    number = (options.named or "").removeprefix("#")
    extra = (options.settings, options.compare, options.function, options.live, options.agent)
    if any(extra) or not (number.isascii() and number.isdecimal() and len(number) < 20):
        raise InvalidInput(
            "rerun recall takes the seq of one recall, and no option of the other forms",
            remedy="Pass 'rerun recall 41'; cerata log --type recall lists the recalls.",
        )
    with reading(options) as store:
        rerun = rerun_recall(view_of(store, options), int(number))
    output.row((f"#{rerun.seq}", "yellow"), f"  {clipped(rerun.query, 60)}  {rerun.outcome}")
    if rerun.difference is not None:
        output.line(f"  {rerun.difference}")
    elif rerun.reason is not None:
        output.line(f"  {clipped(rerun.reason, 200)}")
    elif rerun.outcome == "different":
        output.line("  the same entries, written differently")
    output.result(rerun.to_dict())
    return 0 if rerun.outcome == "same" else 1


def _settings_in(name: str) -> RecallSettings:
    remedy = "Pass a TOML file such as: policy = 'tiered'."
    with opened_input(name, remedy) as (file, _):
        data = file.read(_SIZE_MAX + 1)
    if len(data) > _SIZE_MAX:
        raise InvalidInput("The file is too large for settings", where=name, remedy=remedy)
    try:
        return RecallSettings.from_dict(tomllib.loads(data.decode()))
    except InvalidInput as error:
        where = name if error.where is None else f"{name}, {error.where}"
        raise InvalidInput(error.what, where=where, remedy=error.remedy) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is not TOML: {error}", where=name, remedy=remedy) from error


def _print_change(change: RecallChange, output: Output) -> None:
    output.row(
        (f"#{change.seq}", "yellow"),
        f"  {clipped(change.query, 60)}",
        (f"  tokens {change.tokens_before:,} → {change.tokens_after:,}", "dim"),
    )
    for sign, style, numbers in (("-", "red", change.dropped), ("+", "green", change.added)):
        if numbers:
            output.row((f"  {sign} {_ids(numbers)}", style))
    passages = len(change.passages_before), len(change.passages_after)
    if any(passages):
        output.row(f"  passages {passages[0]:,} → {passages[1]:,}")
    if change.moved:
        moves = [f"#{number} {before}→{after}" for number, before, after in change.moved]
        output.row(f"  moved {', '.join(moves[:_SHOWN_MAX])}{_rest(len(moves))}")
    if not (change.dropped or change.added or change.moved):
        output.row("  the same entries, written differently")


def _ids(numbers: tuple[int, ...]) -> str:
    return ", ".join(f"#{number}" for number in numbers[:_SHOWN_MAX]) + _rest(len(numbers))


def _rest(count: int) -> str:
    return f" and {count - _SHOWN_MAX} more" if count > _SHOWN_MAX else ""
