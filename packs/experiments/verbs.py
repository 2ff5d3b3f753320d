"""Additions to ``time explain``: a recorded recall asked again, or all of them under settings."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Final

from cerata.agents.code import AgentCode, function_named
from cerata.cli.files import opened_input
from cerata.cli.options import check_goes_with, reading, view_of
from cerata.cli.verbs import add_current_folder
from cerata.engine.errors import InvalidInput
from cerata.engine.words import clipped, counted
from cerata.memory.search.recall_rerun import RecallSettings, rerun_recall

from .projection_comparison import compare_projections
from .recall_comparison import compare_recalls, settings_of

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.cli.output import Output
    from cerata.projections.rows.row_fold import MakeOwn

    from .projection_comparison import ProjectionComparison
    from .recall_comparison import ChunkedAgain, RecallChange


def run_again(options: Namespace, output: Output) -> int:
    """Ask a recall again, or compare all recalls under settings."""
    return (_compare if options.seq is None else _ask_again)(options, output)


_SIZE_MAX: Final = 1 << 20
"""Bytes of a file of settings: far more than any."""

_SHOWN_MAX: Final = 8
"""Ids of a line; --json has all."""


def _compare(options: Namespace, output: Output) -> int:
    """Print the recorded recalls whose contexts differ under two settings, and the totals."""
    if not options.compare or not 1 <= len(options.settings) <= 2:
        raise InvalidInput(
            "explain --again needs a SEQ, or --with FILE, once or twice, and --compare",
            remedy="Pass a SEQ, or --with policy.toml --compare.",
        )
    files = [_settings_in(name) for name in options.settings]
    settings = [recall for recall, _ in files]
    before = settings[0] if len(settings) > 1 else None
    classes = _projections_of([name for _, name in files])
    rows: ProjectionComparison | None = None
    with reading(options) as store, output.progress("asking", 0) as steps:
        view = view_of(store, options)
        if classes is not None:
            rows = compare_projections(view, *classes, progress=steps.stand)
        comparison = compare_recalls(view, settings[-1], before, progress=steps.stand)
    if rows is not None:
        _print_rows(rows, output)
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
    output.result({**comparison.to_dict(), "projection": None if rows is None else rows.to_dict()})
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


def _ask_again(options: Namespace, output: Output) -> int:
    """Ask a recorded recall again at its basis, and print "same" or the first difference."""
    settings = {"--with": options.settings, "--compare": options.compare}
    check_goes_with("all recalls, without SEQ", settings, is_passed=False)
    with reading(options) as store:
        rerun = rerun_recall(view_of(store, options), options.seq)
    output.row((f"#{rerun.seq}", "yellow"), f"  {clipped(rerun.query, 60)}  {rerun.outcome}")
    if rerun.differences:
        for difference in rerun.differences[:_SHOWN_MAX]:
            output.line(f"  {difference}")
        if len(rerun.differences) > _SHOWN_MAX:
            output.line(f"  {counted(len(rerun.differences) - _SHOWN_MAX, 'place')} more: --json")
    elif rerun.reason is not None:
        output.line(f"  {clipped(rerun.reason, 200)}")
    elif rerun.outcome == "different":
        output.line("  the same entries, written differently")
    output.result(rerun.to_dict())
    return 0 if rerun.outcome == "same" else 1


def _projections_of(names: list[str | None]) -> tuple[MakeOwn, MakeOwn] | None:
    """Return the two projections to compare; None if no file names one. Imports their modules."""
    if not any(names):
        return None
    if len(names) < 2 or not all(names):
        raise InvalidInput(
            "A projection is compared with another, so both files must name one",
            remedy="Pass --with old.toml --with new.toml, each with projection = 'module:Class'.",
        )
    add_current_folder()
    one, other = (_projection_named(name) for name in names if name)
    return one, other


def _projection_named(name: str) -> MakeOwn:
    made = function_named(name)
    if isinstance(made, AgentCode):
        raise InvalidInput(f"{name!r:.120} is an agent", remedy="Name a cerata.RowProjection.")
    return made


def _print_rows(rows: ProjectionComparison, output: Output) -> None:
    change = (
        "the same rows"
        if rows.same
        else f"{counted(len(rows.changes), 'row')} differ{'s' if len(rows.changes) == 1 else ''}"
    )
    parted = "" if rows.first is None else f", first with event {rows.first:,}"
    output.parts(
        ("projection ", "bold"),
        f"{rows.before} ({rows.rows_before:,}) → {rows.after} ({rows.rows_after:,}): "
        f"{change}{parted}",
    )
    for row in rows.changes[:_SHOWN_MAX]:
        sides = (
            ("nothing" if row.only == "after" else clipped(repr(row.before), 60)),
            ("nothing" if row.only == "before" else clipped(repr(row.after), 60)),
        )
        output.line(f"  {clipped(repr(row.key), 60)}: {sides[0]} → {sides[1]}")
    if len(rows.changes) > _SHOWN_MAX:
        output.line(f"  {_rest(len(rows.changes)).strip()}")


def _settings_in(name: str) -> tuple[RecallSettings, str | None]:
    """Return the settings of a file, and the projection that it names."""
    remedy = "Pass a TOML file such as: policy = 'tiered'."
    with opened_input(name, remedy) as (file, _):
        data = file.read(_SIZE_MAX + 1)
    if len(data) > _SIZE_MAX:
        raise InvalidInput("The file is too large for settings", where=name, remedy=remedy)
    try:
        values = tomllib.loads(data.decode())
        projection: object = values.pop("projection", None)
        if projection is not None and not isinstance(projection, str):
            raise InvalidInput(
                f"projection must be a text, not {projection!r:.60}",
                remedy="Write projection = 'module:Class'.",
            )
        return settings_of(values), projection
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
