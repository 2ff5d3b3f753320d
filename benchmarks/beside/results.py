"""Results of the comparison: medians over rounds, growth exponents, and their form in JSON."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cerata.engine.events import JsonValue

from .rounds import OPERATIONS, Cost, Round


@dataclass(frozen=True, slots=True)
class Figure:
    """An operation: medians over rounds of both percentiles, and processor time at the median."""

    p50_ms: float
    p99_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class SystemResult:
    """The medians of one system at one size; ``raw`` is the size over that of the raw data."""

    figures: dict[str, Figure]
    ingest_rate: float
    ingest_cpu_us: float
    size_bytes: int
    raw: float
    recall: float
    exact_words: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return the form in JSON."""
        operations: dict[str, JsonValue] = {
            name: {
                "p50_ms": round(figure.p50_ms, 4),
                "p99_ms": round(figure.p99_ms, 4),
                "cpu_ms": round(figure.cpu_ms, 4),
            }
            for name, figure in self.figures.items()
        }
        return {
            "ingest_rate": round(self.ingest_rate, 1),
            "ingest_cpu_us": round(self.ingest_cpu_us, 2),
            "operations": operations,
            "size_bytes": self.size_bytes,
            "size_over_raw": round(self.raw, 4),
            "recall": round(self.recall, 4),
            "exact_words": round(self.exact_words, 4),
        }


def result_of(rounds: Sequence[Round], documents: int, raw_bytes: int) -> SystemResult:
    """Return the medians over the rounds of one system at one size."""
    names = [name for name in OPERATIONS if name in rounds[0].costs]
    size_bytes = round(statistics.median(result.size_bytes for result in rounds))
    return SystemResult(
        figures={name: _figure([result.costs[name] for result in rounds]) for name in names},
        ingest_rate=documents / statistics.median(result.ingest.wall for result in rounds),
        ingest_cpu_us=1e6 * statistics.median(result.ingest.cpu for result in rounds) / documents,
        size_bytes=size_bytes,
        raw=size_bytes / raw_bytes,
        recall=statistics.median(result.recall for result in rounds),
        exact_words=min(result.exact_words for result in rounds),
    )


def _figure(rounds: Sequence[Sequence[Cost]]) -> Figure:
    def median(percentile: float, clock: int) -> float:
        values = [np.percentile([cost[clock] for cost in costs], percentile) for costs in rounds]
        return 1e3 * float(statistics.median(values))

    return Figure(median(50, 0), median(99, 0), median(50, 1))


def exponents(
    sizes: Mapping[int, Mapping[str, SystemResult]],
) -> dict[str, dict[str, float]]:
    """Return the growth of each operation of each system: time grows as size to this power.

    Processor time, since waits for the disk and other programs do not grow with the size. The
    growth of ingest is that of all documents, so 1 is a constant rate.
    """
    growth: dict[str, dict[str, float]] = {}
    for name in next(iter(sizes.values())):
        times = {
            operation: [
                results[name].ingest_cpu_us * size
                if operation == "ingest"
                else results[name].figures[operation].cpu_ms
                for size, results in sizes.items()
            ]
            for operation in next(iter(sizes.values()))[name].figures
        }
        growth[name] = {
            operation: exponent(list(sizes), values) for operation, values in times.items()
        }
    return growth


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the slope of log time over log size, by least squares.

    >>> round(exponent([10, 100, 1000], [2.0, 20.0, 200.0]), 6)
    1.0
    >>> round(exponent([10, 1000], [3.0, 3.0]), 6)
    0.0
    """
    across = np.log(np.array(sizes, np.float64))
    up = np.log(np.maximum(np.array(times, np.float64), 1e-9))
    across -= across.mean()
    return float(across @ (up - up.mean()) / (across @ across))
