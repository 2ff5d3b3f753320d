"""The comparison with other systems: the order of the work, the tables and the picture."""

import os
import platform
from argparse import Namespace
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import cerata
from cerata.cli.files import write_picture
from cerata.cli.output import Output
from cerata.engine.errors import InvalidInput
from cerata.engine.events import JsonValue
from cerata.engine.words import counted
from cerata.packs.plots.verbs import form_of

from .chart import chart
from .documents import BATCH, DIMENSION, WORDS, K
from .results import SystemResult, exponents, result_of
from .rounds import OPERATIONS, Round, one_round, work_of
from .systems import SYSTEMS, Entry

Results = Mapping[int, Mapping[str, SystemResult]]
"""For each size the result of each system, by the key of `SYSTEMS`."""

_LABELS: Final = {
    "ingest": "batch of 100",
    "text": "search by words",
    "vector": "search by vector",
    "hybrid": "hybrid search",
    "past": "as of half the log",
    "delete": "delete",
    "cold": "first answer, cold",
}
_TINY_SIZES: Final = (200, 400)
_TINY_QUERIES: Final = 5
_LABEL_WIDTH: Final = 20
_CELL_WIDTH: Final = 15


def compare(options: Namespace, output: Output) -> int:
    """Measure all installed systems, and print a table for each size."""
    svg: str | None = options.svg
    form = None if svg is None else form_of(svg)
    if options.folder is not None and not os.path.isdir(options.folder):
        raise InvalidInput(
            f"--folder must be an existing folder, not {options.folder}",
            remedy="Pass a folder on the disk to measure.",
        )
    sizes: Sequence[int] = _TINY_SIZES if options.tiny else options.sizes
    rounds: int = 1 if options.tiny else options.rounds
    queries: int = _TINY_QUERIES if options.tiny else options.queries
    systems = {name: SYSTEMS[name] for name in ("cerata", *dict.fromkeys(options.peers))}
    skipped = {name: remedy for name, entry in systems.items() if (remedy := entry.missing())}
    for name, remedy in skipped.items():
        output.line(f"{systems.pop(name).name} is skipped; to compare, run {remedy}")
    machine = _machine(systems)
    _print_setting(machine, systems, rounds, queries, output)
    results: dict[int, dict[str, SystemResult]] = {}
    for size in sizes:
        results[size] = _measure(size, list(systems), rounds, queries, options.folder, output)
        _print_table(size, systems, results[size], output)
    growth = exponents(results) if len(results) > 1 else {}
    _print_growth(systems, growth, output)
    if svg is not None and form is not None:
        write_picture(svg, chart(_panels(systems, results), _title(rounds), form), None)
        output.line(f"The picture is in {svg}")
    output.result(
        {
            "machine": machine,
            "batch": BATCH,
            "words": WORDS,
            "dimension": DIMENSION,
            "k": K,
            "rounds": rounds,
            "queries": queries,
            "systems": {name: _described(entry) for name, entry in systems.items()},
            "skipped": {**skipped},
            "sizes": [_size_dict(size, by_name) for size, by_name in results.items()],
            "exponents": {
                name: {operation: round(value, 3) for operation, value in powers.items()}
                for name, powers in growth.items()
            },
            "svg": svg,
        }
    )
    return 0


def _measure(
    size: int, names: Sequence[str], rounds: int, queries: int, folder: str | None, output: Output
) -> dict[str, SystemResult]:
    work = work_of(size, queries)
    raw_bytes = size * 4 * DIMENSION
    raw_bytes += sum(len(text) for batch in work.documents.batches() for text in batch.texts)
    batches = -(-size // BATCH)
    measured: dict[str, list[Round]] = {name: [] for name in names}
    with output.progress(f"{size:,} documents", rounds * batches) as steps:
        for turn in range(rounds):
            for name, result in one_round(work, names, turn, folder, steps.done).items():
                measured[name].append(result)
    return {name: result_of(results, size, raw_bytes) for name, results in measured.items()}


def _machine(systems: Mapping[str, Entry]) -> dict[str, JsonValue]:
    packages = [f"{name} {version(name)}" for name in ("numpy", "blake3", "zstandard")]
    packages += [versions for entry in systems.values() if (versions := entry.versions())]
    if "sqlite" in systems:
        import apsw

        packages.append(f"SQLite {apsw.sqlite_lib_version()}")
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "cerata": cerata.__version__,
        "packages": ", ".join(packages),
    }


def _described(entry: Entry) -> dict[str, JsonValue]:
    return {"name": entry.name, "durability": entry.durability, "note": entry.note}


def _size_dict(size: int, results: Mapping[str, SystemResult]) -> dict[str, JsonValue]:
    systems: dict[str, JsonValue] = {name: result.to_dict() for name, result in results.items()}
    return {"documents": size, "systems": systems}


# --- the tables ----------------------------------------------------------------------------------


def _print_setting(
    machine: Mapping[str, JsonValue],
    systems: Mapping[str, Entry],
    rounds: int,
    queries: int,
    output: Output,
) -> None:
    output.notice(
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load']}, "
        f"Python {machine['python']}, Cerata {machine['cerata']}, {machine['packages']}"
    )
    output.notice(
        f"Documents of {WORDS} words and {DIMENSION} numbers, written in batches of {BATCH}; "
        f"medians of {counted(rounds, 'round')} with {queries} questions; the systems take turns."
    )
    for entry in systems.values():
        output.notice(f"{entry.name}: {entry.durability}; {entry.note}.")


def _print_table(
    size: int, systems: Mapping[str, Entry], results: Mapping[str, SystemResult], output: Output
) -> None:
    output.line()
    _print_row(f"{size:,} documents", [entry.name for entry in systems.values()], output, "bold")
    columns = [results[name] for name in systems]
    _print_row("durability", [entry.durability for entry in systems.values()], output)
    _print_row("documents/s", [f"{result.ingest_rate:,.0f}" for result in columns], output)
    output.line("milliseconds: median / 99 % of calls are faster", style="dim")
    for operation in OPERATIONS:
        _print_row(_LABELS[operation], [_cell(result, operation) for result in columns], output)
    output.line("files and answers", style="dim")
    _print_row("size over raw data", [f"{result.raw:.3f}" for result in columns], output)
    _print_row(f"recall of best {K}", [f"{result.recall:.3f}" for result in columns], output)
    _print_row("rare words right", [f"{result.exact_words:.0%}" for result in columns], output)


def _cell(result: SystemResult, operation: str) -> str:
    figure = result.figures.get(operation)
    if figure is None:
        return "-"
    if operation == "cold":
        return _number(figure.p50_ms)
    return f"{_number(figure.p50_ms)} / {_number(figure.p99_ms)}"


def _number(value: float) -> str:
    """Return a time with three digits that matter.

    >>> _number(0.0567), _number(5.67), _number(1234.5)
    ('0.057', '5.67', '1,234')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _print_growth(
    systems: Mapping[str, Entry], growth: Mapping[str, Mapping[str, float]], output: Output
) -> None:
    if not growth:
        return
    output.line()
    _print_row("growth", [entry.name for entry in systems.values()], output, "bold")
    output.line("processor time grows as documents to the power; all of ingest", style="dim")
    for operation in OPERATIONS:
        cells = [_power(growth[name].get(operation)) for name in systems]
        _print_row("ingest" if operation == "ingest" else _LABELS[operation], cells, output)


def _power(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def _print_row(label: str, cells: Sequence[str], output: Output, style: str | None = None) -> None:
    row = "".join(f"{cell:>{_CELL_WIDTH}}" for cell in cells)
    output.line(f"{label:<{_LABEL_WIDTH}}{row}", style=style)


# --- the picture ---------------------------------------------------------------------------------


def _title(rounds: int) -> str:
    return f"Median times of {counted(rounds, 'round')}, over the number of documents"


def _panels(
    systems: Mapping[str, Entry], results: Results
) -> dict[str, dict[str, list[tuple[int, float]]]]:
    panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for operation in OPERATIONS:
        panels[_LABELS[operation]] = {
            entry.name: [
                (size, by_name[name].figures[operation].p50_ms) for size, by_name in results.items()
            ]
            for name, entry in systems.items()
            if all(operation in by_name[name].figures for by_name in results.values())
        }
    return panels
