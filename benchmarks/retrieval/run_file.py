"""The file of a run: the scores of each question, to compare a later run with.

Owns the JSON form that ``--save`` writes and ``--against`` reads, and its checks.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from cerata import InvalidInput, StorageFailed

from .judged_set import json_of, text_of

VERSION: Final = 1
_REMEDY: Final = "Pass a file that --save wrote."


@dataclass(frozen=True, slots=True)
class SavedRun:
    """The part of a run that a comparison needs."""

    set_name: str
    set_digest: str
    label: str
    scores: Mapping[str, Mapping[str, float]]


def save(run: SavedRun, path: Path) -> None:
    """Write a run into a file, in place of an earlier file.

    Raises:
        StorageFailed: the file cannot be written.
    """
    values = {
        "version": VERSION,
        "set": run.set_name,
        "digest": run.set_digest,
        "label": run.label,
        "scores": {question: dict(scores) for question, scores in run.scores.items()},
    }
    try:
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageFailed(
            f"The run cannot be saved: {error.strerror}",
            where=str(path),
            remedy="Name a file in a folder that exists.",
        ) from error


def load(path: Path) -> SavedRun:
    """Return the run of a file.

    Raises:
        NotFound: the file cannot be read.
        InvalidInput: the file is not that of a run.
    """
    value = json_of(text_of(path), str(path))
    if not isinstance(value, dict):
        raise _wrong("The file of a run must be an object", path)
    members = cast("dict[str, object]", value)
    if members.get("version") != VERSION:
        raise _wrong(
            f"The file of a run must have version {VERSION}, not {members.get('version')!r:.60}",
            path,
        )
    names = [members.get(name) for name in ("set", "digest", "label")]
    if not all(isinstance(name, str) for name in names):
        raise _wrong("The file of a run lacks its set, digest or label", path)
    scores = members.get("scores")
    if not isinstance(scores, dict) or not scores:
        raise _wrong("The file of a run has no scores", path)
    entries = cast("dict[str, object]", scores)
    checked = {question: _scores(entry, question, path) for question, entry in entries.items()}
    set_name, digest, label = cast("list[str]", names)
    return SavedRun(set_name, digest, label, checked)


def _scores(entry: object, question: str, path: Path) -> dict[str, float]:
    scores = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    numbers = {
        name: float(score)
        for name, score in scores.items()
        if isinstance(score, int | float) and math.isfinite(score)
    }
    if not numbers or len(numbers) != len(scores):
        raise _wrong(
            f"The scores of question {question!r:.60} must map metrics to numbers, "
            f"not {entry!r:.60}",
            path,
        )
    return numbers


def _wrong(fault: str, path: Path) -> InvalidInput:
    return InvalidInput(fault, where=str(path), remedy=_REMEDY)
