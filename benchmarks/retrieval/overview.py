"""All development sets in one table, beside SQLite FTS5, and the guard over them.

Owns the run of ``all``: its options, its order of sets and embedders, and its table. Scores of FTS5
are kept in the cache, since they change with SQLite alone. Each run writes its stores again, so
that a change of the index is always measured; only embeddings are kept.
"""

import argparse
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import cerata
from benchmarks.append_bench import machine
from cerata import CerataError, NotFound, Profile

from . import marks, run_file, xquad
from .asking import Asking, Progress, Row, peer_row
from .bootstrap import differences
from .development import DEFAULT_EMBEDDERS, EMBEDDERS, FOLDERS, SETS
from .embedding_cache import CachedEmbedder
from .folder_set import FOLDER, measure_folder
from .guard import GUARDED, Line, guard
from .ingest import Style
from .judged_set import JudgedSet, json_of, text_of
from .report import percent, signed, table
from .sqlite_peer import TOKENIZERS

NAMES: Final = (*SETS, *FOLDERS)


def main(options: argparse.Namespace, progress: Progress) -> int:
    """Run all sets, print the table and the guard; return 1 if a line of the guard fails.

    Raises:
        NotFound: the folder has none of the chosen sets.
        InvalidInput: a file has another form.
    """
    started = time.time()
    notices: list[str] = []
    rows = [*_rows(options, notices, progress)]
    if not rows:
        raise NotFound(
            "The folder has none of the chosen sets",
            where=str(options.data),
            remedy="Pass the folder of the development sets with --data.",
        )
    lines = guard(rows)
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
        for row in rows:
            if row.each:
                run = run_file.SavedRun(row.set, row.digest, row.system, row.each)
                run_file.save(run, _saved(options.save, row))
    if options.json:
        content = {
            "machine": machine().splitlines(),
            "cerata": cerata.__version__,
            "sqlite": sqlite3.sqlite_version,
            "seconds": time.time() - started,
            "notices": notices,
            "rows": [row.to_dict() for row in rows],
            "guard": [line._asdict() for line in lines],
        }
        print(json.dumps(content, indent=1))
    else:
        print(f"{machine()}, cerata {cerata.__version__}, SQLite {sqlite3.sqlite_version}")
        for text in (*notices, "", *report(rows, options.against), "", *_guard_lines(lines)):
            print(text)
        print(f"{time.time() - started:.0f} s, {time.process_time():.0f} s of processor time")
    return 0 if all(line.passes for line in lines) else 1


def _rows(options: argparse.Namespace, notices: list[str], progress: Progress) -> Iterator[Row]:
    profile = _profile(options.profile)
    embedders = _embedders(options.embedders, options.cache, notices)
    for name in options.sets:
        path = options.data / (FOLDER if name in FOLDERS else SETS[name].path)
        if not path.exists():
            notices.append(f"{name} is left out: {path} does not exist")
        elif name in FOLDERS:
            for system, embedder in embedders.items():
                progress(f"{name}, {system}")
                folder = measure_folder(options.data, embedder, FOLDERS[name], profile)
                yield Row(name, system, folder=folder)
        else:
            judged = SETS[name].load(path)
            for tokenizer in TOKENIZERS:
                yield _peer_row(judged, name, tokenizer, options.cache)
            asking = Asking(
                judged,
                name,
                SETS[name].tokens,
                xquad.answers(path) if name.startswith("xquad") else None,
                profile,
                quick=options.quick,
                contexts=options.contexts,
            )
            for system, embedder in embedders.items():
                if embedder is not None:
                    warm(embedder, judged, progress)
                yield asking.row(system, embedder, progress)


def warm(
    embedder: CachedEmbedder, judged: JudgedSet, progress: Progress, style: Style | None = None
) -> None:
    """Embed all texts and questions of a set that the cache lacks."""
    form = style or Style()
    texts = [form.text(document) for corpus in judged.corpora for document in corpus.documents]
    texts += [question.text for question in judged.questions]

    def embedded(count: int, total: int) -> None:
        if count % 1_024 == 0 or count == total:
            progress(f"{judged.name}: {count:,} of {total:,} texts embedded")

    embedder.warm(texts, embedded)


def _peer_row(judged: JudgedSet, name: str, tokenizer: str, cache: Path) -> Row:
    """Return the row of a tokenizer, from the cache if it has the row."""
    version = f"{sqlite3.sqlite_version}-{judged.digest}"
    path = cache / "fts5" / f"{name}-{tokenizer}-{version}.json"
    if path.exists():
        run = run_file.load(path)
        each = {question: dict(scores) for question, scores in run.scores.items()}
        return Row(name, run.label, run.set_digest, each)
    row = peer_row(judged, name, tokenizer)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    run_file.save(run_file.SavedRun(name, row.digest, row.system, row.each), path)
    return row


def _embedders(
    names: Iterable[str], cache: Path, notices: list[str]
) -> dict[str, CachedEmbedder | None]:
    embedders: dict[str, CachedEmbedder | None] = {}
    for name in names:
        try:
            model = EMBEDDERS[name]()
        except CerataError as error:
            notices.append(f"embedder {name} is left out: {error}")
            continue
        embedders[name] = None if model is None else CachedEmbedder(model, cache)
    return embedders


def _profile(value: str | None) -> str | Profile | None:
    """Return a profile: None, a name, or the profile of a JSON file."""
    if value is None or not value.endswith(".json"):
        return value
    members: Any = json_of(text_of(Path(value)), value)
    return Profile.from_dict(members)


def report(rows: Sequence[Row], against: Path | None = None) -> Iterator[str]:
    """Yield the tables.

    Args:
        rows: the rows, in the order of sets
        against: the folder of an earlier run to compare with; default none
    """
    judged = [row for row in rows if row.folder is None]
    if judged:
        yield from table(_score_cells(judged))
    for row in rows:
        if row.folder is not None:
            yield f"{row.set}, {row.system}: {row.folder.text}"
    for row in rows:
        if row.answered:
            counts = ", ".join(f"{form} {count}" for form, count in row.answered.items())
            yield f"{row.set}, {row.system}: of {marks.COUNT} questions answered: {counts}"
    if against is not None:
        yield from _against_lines(rows, against)


def _score_cells(rows: Sequence[Row]) -> list[list[str]]:
    cells = [["set", "system", "questions", "R@1/R@10/nDCG@10", "nothing", "unsure", "ms", ""]]
    for row in rows:
        scores = [f"{percent(score)}" for score in row.scores.values()]
        more = [f"{name} {percent(score)}" for name, score in [*row.scores.items()][3:]]
        cells.append(
            [
                row.set,
                row.system,
                f"{len(row.each):,}",
                "/".join(scores[:3]),
                "" if row.nothing is None else percent(row.nothing),
                "" if row.unsure is None else percent(row.unsure),
                "" if row.milliseconds is None else f"{row.milliseconds:.2f}",
                ", ".join(more),
            ]
        )
    return cells


def _against_lines(rows: Sequence[Row], folder: Path) -> Iterator[str]:
    """Yield the change of each row that an earlier run has, with the interval of 95 %."""
    yield ""
    for row in rows:
        path = _saved(folder, row)
        if not row.each or row.milliseconds is None or not path.exists():
            continue
        run = run_file.load(path)
        if run.set_digest != row.digest:
            yield f"{row.set}, {row.system}: the earlier run is of another set"
            continue
        changes = differences(row.each, run.scores)
        figures = [
            f"{metric} {signed(change.mean)} [{signed(change.low)}, {signed(change.high)}]"
            for metric in GUARDED
            if (change := changes.get(metric)) is not None
        ]
        yield f"{row.set}, {row.system}: change {', '.join(figures)}"


def _saved(folder: Path, row: Row) -> Path:
    return folder / f"{row.set}-{row.system.replace(' ', '-')}.json"


def _guard_lines(lines: Sequence[Line]) -> Iterator[str]:
    yield from (line.text for line in lines)
    failed = sum(not line.passes for line in lines)
    yield f"guard: {failed} of {len(lines)} lines fail"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``all`` but for the cache."""
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument(
        "--sets",
        type=lambda text: _chosen(text, NAMES),
        default=[*NAMES],
        help=f"separated by commas; default all: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--embedders",
        type=lambda text: _chosen(text, [*EMBEDDERS]),
        default=[*DEFAULT_EMBEDDERS],
        help=f"of {', '.join(EMBEDDERS)}; default {','.join(DEFAULT_EMBEDDERS)}",
    )
    parser.add_argument("--profile", help="a profile by name, or its JSON file (….json)")
    parser.add_argument("--quick", action="store_true", help="rankings alone, no contexts")
    parser.add_argument(
        "--contexts", action="store_true", help="also evidence and answers in contexts (slow)"
    )
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep the scores of the run")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare with a kept run")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def _chosen(text: str, names: Sequence[str]) -> list[str]:
    parts = [part for part in text.split(",") if part]
    if not parts or not {*parts} <= {*names}:
        raise argparse.ArgumentTypeError(f"use some of {', '.join(names)}, not {text!r}")
    return parts
