"""The child process of the comparison: it opens a store, answers once, and prints the time."""

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from .documents import Batch, Question
from .systems import SYSTEMS, Entry


def main() -> None:
    """Answer the question on standard input.

    Prints the seconds of the clock and of the processor from the opening on, without imports.
    """
    asked = json.load(sys.stdin)
    system = SYSTEMS[asked["system"]]
    question = Question(asked["text"], np.array(asked["vector"], np.float32))
    import_all(system, question)
    started, begun = time.perf_counter(), time.process_time()
    store = system.open(Path(asked["folder"]))
    assert store.hybrid(question)
    wall, cpu = time.perf_counter() - started, time.process_time() - begun
    print(json.dumps([wall, cpu]))


def import_all(system: Entry, question: Question) -> None:
    """Import the modules of a first answer, which should not include them.

    Cerata imports most modules when they are used, so a store of one document answers first.
    """
    system.load()
    if system.imports_late:
        with tempfile.TemporaryDirectory() as folder:
            small = system.open(Path(folder))
            small.add(Batch(0, [question.text], question.vector[np.newaxis]))
            assert small.hybrid(question)
            small.close()


if __name__ == "__main__":
    main()
