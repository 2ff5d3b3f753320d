"""The report of a run, as tables for people and as one JSON object.

Owns the order of columns and the wording. Percentages have one digit after the point; times are
processor time without the model.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import cerata
from benchmarks.append_bench import machine

from .bootstrap import Difference, differences
from .judged_set import JudgedSet
from .measurement import Measurement, Settings
from .metrics import GAIN_DEPTH, RECALL_DEPTHS, SESSION_METRICS, TURN_METRICS, mean
from .run_file import SavedRun

ABLATED_METRICS: Final = (f"R@{RECALL_DEPTHS[1]}", f"nDCG@{GAIN_DEPTH}")
"""Metrics of the table of an ablation."""

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Report:
    """A run, its set, and the run to compare it with."""

    judged: JudgedSet
    settings: Settings
    embedder: str
    measurement: Measurement
    against: SavedRun | None = None

    @property
    def label(self) -> str:
        """The choices of the run in a line."""
        style = self.settings.style
        parts = [
            f"embedder {self.embedder}",
            f"profile {self.profile}",
            f"speaker as {style.speaker}",
            f"session as {style.session}",
        ]
        if self.settings.policy is not None:
            parts.append(f"policy {self.settings.policy}")
        return ", ".join(parts)

    @property
    def profile(self) -> str:
        """The profiles that ran, or that of the settings if no context tells."""
        return ", ".join(self.measurement.profiles) or str(self.settings.profile)

    @property
    def milliseconds(self) -> dict[str, float]:
        """Processor time of a question without the model: mean, median and p99."""
        return _times(self.measurement.seconds)

    @property
    def saved(self) -> SavedRun:
        """The part of the run that a later comparison needs."""
        return SavedRun(self.judged.name, self.judged.digest, self.label, self.measurement.scores)

    @property
    def compared(self) -> dict[str, Difference]:
        """The difference of each metric to the other run, if any."""
        if self.against is None:
            return {}
        return differences(self.measurement.scores, self.against.scores)

    @property
    def groups(self) -> dict[str, dict[str, float]]:
        """The means of all questions and of each category; "questions" has their number."""
        measurement = self.measurement
        members: dict[str, list[Mapping[str, float]]] = {"all": [*measurement.scores.values()]}
        for category in sorted(set(measurement.categories.values())):
            members[category] = [
                measurement.scores[question]
                for question, name in measurement.categories.items()
                if name == category
            ]
        return {
            name: {"questions": float(len(scores)), **mean(scores)}
            for name, scores in members.items()
        }

    def to_dict(self) -> Json:
        """Return the report as plain values."""
        measurement = self.measurement
        return {
            "set": self.judged.name,
            "digest": self.judged.digest,
            "label": self.label,
            "lanes": [*measurement.lanes],
            "notices": [*self.judged.notices],
            "machine": machine().splitlines(),
            "cerata": cerata.__version__,
            "corpora": len(self.judged.corpora),
            "documents": measurement.documents,
            "scores": self.groups,
            "contexts": self._contexts(),
            "milliseconds": self.milliseconds,
            "ingest": {
                "milliseconds per document": _per_document(measurement),
                "bytes per document": measurement.size_bytes / measurement.documents,
            },
            "rankings": measurement.digest,
            "ablation": self._ablation(),
            "against": None if self.against is None else self.against.label,
            "differences": {name: change._asdict() for name, change in self.compared.items()},
        }

    def _contexts(self) -> Json:
        """Return the mean entries of a context by budget, and the tokens of each by their use."""
        return {
            str(budget): {
                "entries": cost.entries / cost.contexts,
                "source tokens per entry": cost.source,
                "speaker tokens per entry": cost.speakers / max(cost.entries, 1),
            }
            for budget, cost in self.measurement.costs.items()
        }

    def _ablation(self) -> Json:
        return {
            name: None
            if scores is None
            else {
                metric: change._asdict()
                for metric, change in differences(scores, self.measurement.scores).items()
            }
            for name, scores in self.measurement.ablations.items()
        }

    def lines(self) -> Iterable[str]:
        """Yield the lines for people."""
        measurement = self.measurement
        yield f"{self.judged.name}, set {self.judged.digest}: {self.label}"
        yield (
            f"{len(self.judged.corpora):,} corpora, {measurement.documents:,} documents, "
            f"{len(measurement.scores):,} questions; lanes {', '.join(measurement.lanes)}"
        )
        yield f"{machine()}, cerata {cerata.__version__}"
        yield from self.judged.notices
        yield ""
        yield from self._means()
        yield from self._costs()
        yield from self._ablation_lines()
        yield from self._against_lines()

    def _means(self) -> Iterable[str]:
        groups = self.groups
        names = [name for name in (*TURN_METRICS, *SESSION_METRICS) if name in groups["all"]]
        names += [name for name in groups["all"] if name not in (*names, "questions")]
        rows = [["", "questions", *names]]
        for group, scores in groups.items():
            figures = [percent(scores[name]) if name in scores else "" for name in names]
            rows.append([group, f"{scores['questions']:,.0f}", *figures])
        return table(rows)

    def _costs(self) -> Iterable[str]:
        measurement = self.measurement
        for budget, cost in measurement.costs.items():
            yield (
                f"contexts of {budget:,} tokens: {cost.entries / cost.contexts:.1f} entries; an "
                f"entry takes {cost.source:.2f} tokens of sources and ids, and "
                f"{cost.speakers / max(cost.entries, 1):.2f} of its speaker"
            )
        times = self.milliseconds
        yield (
            f"time of a question: mean {times['mean']:.2f} ms, median {times['median']:.2f} ms, "
            f"p99 {times['p99']:.2f} ms of processor time, without the model"
        )
        yield (
            f"writing: {_per_document(measurement):.3f} ms a document, "
            f"{measurement.size_bytes / measurement.documents:,.0f} bytes in the file; "
            f"rankings {measurement.digest}"
        )

    def _ablation_lines(self) -> Iterable[str]:
        if not self.measurement.ablations:
            return
        rows = [["without", *(f"{name} (change, 95 %)" for name in ABLATED_METRICS)]]
        idle: list[str] = []
        for name, scores in self.measurement.ablations.items():
            if scores is None:
                rows.append([name, "no lane can run", ""])
            elif scores == _ranked_alone(self.measurement.scores, scores):
                idle.append(name)
            else:
                changes = differences(scores, self.measurement.scores)
                rows.append([name, *(_change(changes[metric]) for metric in ABLATED_METRICS)])
        yield ""
        yield from table(rows)
        if idle:
            yield f"no effect: {', '.join(idle)}"

    def _against_lines(self) -> Iterable[str]:
        if self.against is None:
            return
        yield ""
        yield f"against {self.against.label}"
        rows = [["", "this", "that", "difference, 95 %", "better", "worse"]]
        for name, change in self.compared.items():
            interval = f"{signed(change.mean)} [{signed(change.low)}, {signed(change.high)}]"
            figures = percent(change.first), percent(change.second), interval
            rows.append([name, *figures, f"{change.better:,}", f"{change.worse:,}"])
        yield from table(rows)


def table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield rows as aligned lines: the first column to the left, all further to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *aligned]).rstrip()


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.1f}"


def signed(share: float) -> str:
    """Return a difference of shares in points, with its sign."""
    return f"{100 * share:+.1f}"


def _change(change: Difference) -> str:
    interval = f"[{signed(change.low)}, {signed(change.high)}]"
    return f"{percent(change.first)} ({signed(change.mean)} {interval})"


def _ranked_alone(
    whole: Mapping[str, Mapping[str, float]], part: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Return the scores of a run, with the metrics alone that another run has."""
    return {
        question: {name: whole[question][name] for name in scores}
        for question, scores in part.items()
    }


def _times(seconds: Sequence[float]) -> dict[str, float]:
    milliseconds = sorted(1e3 * second for second in seconds)
    return {
        "mean": statistics.fmean(milliseconds),
        "median": statistics.median(milliseconds),
        "p99": milliseconds[(len(milliseconds) * 99) // 100],
    }


def _per_document(measurement: Measurement) -> float:
    return 1e3 * measurement.ingest_seconds / measurement.documents
