"""A folder of real files: the command is killed, resumed, and repeated on unchanged files.

``python -m benchmarks.folder_bench`` (``--tiny`` in CI). The files are the sources of the standard
library and of the installed packages, with their documents. ``cerata remember`` is killed three
times with SIGKILL, each time after some more files, and then runs to the end. Each file must then
be stored once, and a text file byte for byte. The same command must add nothing when repeated; its
time is compared with the time of a run without kills.
"""

import argparse
import json
import os
import platform
import shutil
import site
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import cerata
from benchmarks.append_bench import machine
from cerata.engine.errors import CerataError, NotFound

ENDINGS = {".py", ".md", ".rst", ".txt", ".html"}
KILLS = 3


def real_files() -> Iterator[Path]:
    """Yield real files that have text, in a fixed order."""
    for top in (Path(os.__file__).parent, *map(Path, site.getsitepackages())):
        for path in sorted(top.rglob("*")):
            fits = path.suffix in ENDINGS and 0 < path.stat().st_size < 1 << 20
            if fits and (top.name == "site-packages" or "site-packages" not in path.parts):
                yield path


def copy_files(folder: Path, count: int) -> int:
    """Copy so many real files that are UTF-8 into a folder, and return their bytes."""
    size = 0
    copied = 0
    for path in real_files():
        data = path.read_bytes()
        try:
            is_text = bool(data.decode().strip()) and b"\0" not in data
        except UnicodeDecodeError:
            is_text = False
        if is_text and copied < count:
            target = folder / f"{copied % 40:02}" / f"{copied:05}-{path.name.lstrip('.')}"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)
            copied += 1
            size += len(data)
    if copied < count:
        raise NotFound(
            f"There are {copied:,} such files here, not {count:,}",
            remedy=f"Pass --files {copied}.",
        )
    return size


def command(file: Path, folder: Path) -> list[str]:
    names = ["-f", str(file), "remember", str(folder), "--json", "--no-default-excludes"]
    return [sys.executable, "-m", "cerata", *names]


def environment() -> dict[str, str]:
    """Return an environment in which a child imports the same Cerata as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def remember(file: Path, folder: Path) -> tuple[Mapping[str, Any], float]:
    """Run the command to the end; return its answer and its seconds."""
    started = time.perf_counter()
    run = subprocess.run(
        command(file, folder), stdout=subprocess.PIPE, env=environment(), check=True
    )
    return cast("Mapping[str, Any]", json.loads(run.stdout)), time.perf_counter() - started


def head_of(file: Path) -> int:
    try:
        with cerata.open(file, mode="r") as store:
            return store.head.seq
    except CerataError:
        return 0


def kill_at(file: Path, folder: Path, head: int) -> int:
    """Kill the command after so many new events in the log; return the head."""
    goal = head_of(file) + head
    with subprocess.Popen(
        command(file, folder), stdout=subprocess.DEVNULL, env=environment()
    ) as child:
        while child.poll() is None and head_of(file) < goal:
            time.sleep(0.01)
        child.kill()
    return head_of(file)


def check_whole(file: Path, folder: Path) -> int:
    """Assert that each file is stored once and whole; return the number of files."""
    expected = {path.as_posix(): path for path in folder.rglob("*") if path.is_file()}
    with cerata.open(file, mode="r") as store:
        frames = list(store.frames())
        assert Counter(frame.uri for frame in frames) == Counter(list(expected))
        for frame in frames:
            path = expected[frame.uri or ""]
            if path.suffix != ".html":
                assert frame.text.encode() == path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        assert store.verify().ok
    return len(frames)


def main(arguments: list[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    count: int = 60 if options.tiny else options.files
    print(machine())
    with tempfile.TemporaryDirectory() as place:
        folder, killed, whole = Path(place, "files"), Path(place, "a.cera"), Path(place, "b.cera")
        folder.mkdir()
        size = copy_files(folder, count)
        print(f"{count:,} files, {size:,} bytes, Python {platform.python_version()}")
        heads = [kill_at(killed, folder, count // 2) for _ in range(KILLS)]
        assert 0 < heads[0] < heads[1] < heads[2]
        rest, _ = remember(killed, folder)
        assert rest["skipped"] == rest["replaced"] == 0
        assert rest["added"] + rest["unchanged"] == count
        print(f"killed {KILLS} times, at events {', '.join(map(str, heads))} of {rest['head']:,}")
        print(f"resumed: {check_whole(killed, folder):,} files, each once and whole")
        _, first = remember(whole, folder)
        times: list[float] = []
        for _ in range(3):
            again, seconds = remember(whole, folder)
            assert (again["added"], again["unchanged"], again["frames"]) == (0, count, 0)
            times.append(seconds)
        best = min(times)
        print(f"remembered in {first:.1f} s, again in {best:.1f} s (best of 3)")
        print(f"ratio {first / best:.1f}")


if __name__ == "__main__":
    main()
