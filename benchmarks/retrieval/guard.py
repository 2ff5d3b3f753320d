"""The guard over all development sets: which figures must not be lower than which.

Owns the rules. Each yields lines that pass or fail (`Line`):

- an embedder lowers no set by more than `EMBEDDER_LOSS`;
- no set is below the best tokenizer of FTS5 by more than `PEER_LOSS`;
- in a mixed folder an embedder loses no answer that words alone show, nor a first hit, and a word
  of one passage finds the passage first;
- questions about a conversation are answered, and those about another mostly are not.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .asking import Row
from .development import PLAIN
from .metrics import GAIN_DEPTH, RECALL_DEPTHS
from .report import percent

EMBEDDER_LOSS: Final = 0.003
"""The largest loss by an embedder, as a share: the worth of a question or two in a thousand."""

PEER_LOSS: Final = 0.005
OWN_LEAST: Final = 175
RENAMED_MOST: Final = {"minilm": 95}
"""Most answered questions of another conversation with this one's names, by embedder."""
RENAMED_MOST_BY_WORDS: Final = 120
"""The static embedder has this limit, too, since words are most of its scores."""
NOTHING_MOST: Final = 0.02
GUARDED: Final = (f"R@{RECALL_DEPTHS[1]}", f"nDCG@{GAIN_DEPTH}")
PEER: Final = "fts5 "


class Line(NamedTuple):
    """A rule for a set and an embedder: its outcome, and its figures."""

    rule: str
    set: str
    system: str
    passes: bool
    figures: str

    @property
    def text(self) -> str:
        """The rule in a line."""
        outcome = "pass" if self.passes else "FAIL"
        return f"{outcome}  {self.set}, {self.system}: {self.rule}: {self.figures}"


def guard(rows: Sequence[Row]) -> list[Line]:
    """Return the lines of all rules that the rows have figures for."""
    lines: list[Line] = []
    for name in dict.fromkeys(row.set for row in rows):
        of_set = {row.system: row for row in rows if row.set == name}
        peers = [row for system, row in of_set.items() if system.startswith(PEER)]
        plain = of_set.get(PLAIN)
        for row in of_set.values():
            if row in peers:
                continue
            if plain is not None and row is not plain:
                lines += _beside_words(row, plain)
            if peers:
                lines += _beside_peers(row, peers)
            lines += _alone(row)
    return lines


def _beside_words(row: Row, plain: Row) -> Iterator[Line]:
    for metric in GUARDED if row.scores else ():
        score, least = row.scores[metric], plain.scores[metric]
        yield Line(
            f"{metric} is not below words alone",
            row.set,
            row.system,
            score >= least - EMBEDDER_LOSS,
            f"{percent(score)}, words {percent(least)}",
        )
    if row.folder is not None and plain.folder is not None:
        pairs = {
            "answers in contexts": (row.folder.in_context, plain.folder.in_context),
            "first hits": (row.folder.first, plain.folder.first),
        }
        for rule, (count, least) in pairs.items():
            figures = f"{count}, words {least} of {row.folder.questions}"
            passes = count >= least
            yield Line(f"{rule} are not fewer", row.set, row.system, passes, figures)


def _beside_peers(row: Row, peers: Sequence[Row]) -> Iterator[Line]:
    for metric in GUARDED:
        best = max(peers, key=lambda peer: peer.scores[metric])
        score, least = row.scores[metric], best.scores[metric]
        yield Line(
            f"{metric} is not below FTS5",
            row.set,
            row.system,
            score >= least - PEER_LOSS,
            f"{percent(score)}, {best.system} {percent(least)}",
        )


def _alone(row: Row) -> Iterator[Line]:
    if row.nothing is not None:
        passes = row.nothing <= NOTHING_MOST
        rule = "answerable questions get something"
        yield Line(rule, row.set, row.system, passes, f"{percent(row.nothing)} get nothing")
    if row.folder is not None:
        first, words = row.folder.words_first, row.folder.words
        rule = "a word of one passage finds it first"
        yield Line(rule, row.set, row.system, first == words, f"{first} of {words}")
    if row.answered:
        answered, renamed = row.answered["own"], row.answered["with names"]
        most = RENAMED_MOST.get(row.system, RENAMED_MOST_BY_WORDS)
        rule = "questions of this conversation are answered"
        yield Line(
            rule, row.set, row.system, answered >= OWN_LEAST, f"{answered}, at least {OWN_LEAST}"
        )
        rule = "questions of another are not, with this one's names"
        yield Line(rule, row.set, row.system, renamed <= most, f"{renamed}, at most {most}")
