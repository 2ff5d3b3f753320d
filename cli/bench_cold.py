"""The child process of `cerata bench`: it opens a store, answers once, and prints the time."""

import json
import sys
import time
from pathlib import Path

import numpy as np

from .bench_documents import Question
from .bench_systems import SYSTEMS


def main() -> None:
    """Answer the question on standard input.

    Prints the seconds of the clock and of the processor from the opening on, without imports.
    """
    asked = json.load(sys.stdin)
    system = SYSTEMS[asked["system"]]
    question = Question(asked["text"], np.array(asked["vector"], np.float32))
    system.load()
    started, begun = time.perf_counter(), time.process_time()
    store = system.open(Path(asked["folder"]))
    assert store.hybrid(question)
    wall, cpu = time.perf_counter() - started, time.process_time() - begun
    print(json.dumps([wall, cpu]))


if __name__ == "__main__":
    main()
