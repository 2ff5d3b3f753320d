"""All sets in one table, and the guard that an embedder never lowers a profile by far.

Owns the comparison of runs of one set and profile with and without an embedder. A lane that finds
nothing changes no order, and a lane that finds other frames is worth its weight on every set; so a
loss of more than `LOWERED_MOST` in recall or nDCG is a fault of the profile.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from .metrics import GAIN_DEPTH, RECALL_DEPTHS, SESSION_METRICS, TURN_METRICS, evidence_name
from .report import Report, percent, table

PLAIN: Final = "none"
"""The name of runs without an embedder."""

LOWERED_MOST: Final = 0.003
"""The largest loss, as a share: 0.3 points, what a question or two in a thousand change."""

GUARDED: Final = (f"R@{RECALL_DEPTHS[1]}", f"nDCG@{GAIN_DEPTH}")


class Loss(NamedTuple):
    """A metric that an embedder lowers: shares without it and with it."""

    set: str
    profile: str
    embedder: str
    metric: str
    plain: float
    lowered: float

    @property
    def line(self) -> str:
        """The loss in a line."""
        return (
            f"{self.set}, {self.profile}: {self.embedder} lowers {self.metric} "
            f"from {percent(self.plain)} to {percent(self.lowered)}"
        )


def losses(reports: Sequence[Report]) -> list[Loss]:
    """Return the guarded metrics that are lower with an embedder, by more than `LOWERED_MOST`.

    Args:
        reports: runs; those of one set and profile are compared with the run without an embedder
    """
    plain = {
        (report.judged.name, report.profile): report.groups["all"]
        for report in reports
        if report.embedder == PLAIN
    }
    found: list[Loss] = []
    for report in reports:
        key = report.judged.name, report.profile
        if report.embedder == PLAIN or key not in plain:
            continue
        scores = report.groups["all"]
        found += [
            Loss(*key, report.embedder, metric, plain[key][metric], scores[metric])
            for metric in GUARDED
            if scores[metric] < plain[key][metric] - LOWERED_MOST
        ]
    return found


def lines(reports: Sequence[Report]) -> Iterable[str]:
    """Yield a row for each run, then each loss."""
    budgets = dict.fromkeys(
        evidence_name(tokens) for report in reports for tokens in report.settings.contexts
    )
    names = [*TURN_METRICS, *SESSION_METRICS, *budgets]
    rows = [["set", "embedder", "profile", *names, "ms", "rankings"]]
    for report in reports:
        scores = report.groups["all"]
        figures = [percent(scores[name]) if name in scores else "" for name in names]
        ending = f"{report.milliseconds['mean']:.2f}", report.measurement.digest
        rows.append([report.judged.name, report.embedder, report.profile, *figures, *ending])
    yield from table(rows)
    yield ""
    lowered = losses(reports)
    yield from (loss.line for loss in lowered)
    if not lowered:
        yield f"No embedder lowers {' or '.join(GUARDED)} by more than {percent(LOWERED_MOST)}."
