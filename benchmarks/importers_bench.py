"""Importers: the processor time of a dry run, an import and a second import of lines.

``python -m benchmarks.importers_bench``. Each line has an id, a tag and eight words.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path

import cerata
from cerata.integrations.importers import import_from

COUNT = 10_000


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a run for tests")
    count = 100 if parser.parse_args(words).tiny else COUNT
    print(f"Cerata {cerata.__version__}, Python {sys.version.split()[0]}, {platform.machine()}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "notes.jsonl"
        with source.open("w", encoding="utf-8") as file:
            for number in range(count):
                text = f"note {number} about the bridge and the river"
                file.write(json.dumps({"id": number, "text": text, "tags": ["a"]}) + "\n")
        with cerata.open(Path(folder) / "a.cera") as store:
            for part in ("dry run", "import", "second import"):
                start = time.process_time()
                imported = import_from(store, "jsonl", source, dry_run=part == "dry run")
                spent = time.process_time() - start
                print(
                    f"{part:<14} {spent:6.2f} s, {imported.added:,} added, {imported.known:,} known"
                )


if __name__ == "__main__":
    main()
