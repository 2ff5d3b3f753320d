"""An addition to ``file export``: the messages of an agent, as a file for each day.

Owns the files; leaves out the content of a day (`cerata.agents.continuity.readings`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cerata.cli.files import STREAM, new_file
from cerata.cli.options import reading, view_of
from cerata.engine.errors import Conflict, InvalidInput

from .talk import agent_in, agent_scope

if TYPE_CHECKING:
    from argparse import Namespace

    from cerata.cli.output import Output
    from cerata.engine.events import JsonValue

    from ..continuity.readings import ArchivedDay


def run_archive(options: Namespace, output: Output) -> int:
    """Write the days that the folder lacks; a file that differs is an error before any write."""
    from cerata.agents.continuity.exchanges import Talk
    from cerata.engine.words import counted
    from cerata.memory.snapshot.reader import snapshot_of

    from ..continuity.readings import archived_days

    passed = {
        "FILE": options.to != STREAM,
        "--history": options.history,
        "--from": options.first is not None,
    }
    for name, is_passed in passed.items():
        if is_passed:
            raise InvalidInput(f"--archive takes no {name}", remedy=f"Leave out {name}.")
    with reading(options) as store:
        view = view_of(store, options)
        snapshot = agent_scope(snapshot_of(view))
        agent = agent_in(store, snapshot, options.agent)
        talk = Talk(snapshot, agent.name)
        folder = _folder(options.archive)
        present = {day.date for day in archived_days(talk) if _is_present(folder, day)}
        folder.mkdir(parents=True, exist_ok=True)
        days: list[JsonValue] = []
        for day in archived_days(talk):
            if day.date not in present:
                with new_file(str(_path(folder, day)), store.path) as file:
                    file.write(day.data)
            days.append(
                {
                    "date": day.date,
                    "count": day.count,
                    "unreadable": day.unreadable,
                    "added": day.date not in present,
                }
            )
        output.line(
            f"{counted(len(days), 'day')} in {folder}, {len(days) - len(present):,} new, "
            f"as of event {view.basis:,}"
        )
        output.result(
            {
                "file": store.path,
                "to": str(folder),
                "agent": agent.name,
                "basis": view.basis,
                "days": days,
            }
        )
    return 0


def _folder(name: str) -> Path:
    if not name or (Path(name).exists() and not Path(name).is_dir()):
        raise InvalidInput(
            f"--archive {name!r:.60} is no folder", remedy="Pass the name of a folder."
        )
    return Path(name)


def _path(folder: Path, day: ArchivedDay) -> Path:
    return folder / f"{day.date}.json"


def _is_present(folder: Path, day: ArchivedDay) -> bool:
    """Return whether the folder has a day's file.

    Raises:
        Conflict: the file has another content.
    """
    path = _path(folder, day)
    if not path.exists():
        return False
    if day.unreadable and path.is_file():
        # The file may have the messages that cannot be read now.
        return True
    # A pipe or a device is not opened.
    is_equal = path.is_file() and path.stat().st_size == len(day.data)
    if not is_equal or path.read_bytes() != day.data:
        raise Conflict(
            f"{path} exists and differs from the messages of its day",
            remedy="Pass another folder, or move the file away.",
        )
    return True
