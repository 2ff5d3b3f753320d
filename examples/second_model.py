"""A second embedding model takes over: the process that embeds is killed, and then continues.

    python examples/second_model.py [--notes 400]

Both models are toys that hash words, so that the example runs anywhere. The file has the vectors of
the first model. A process that is killed in the middle adds vectors of the second model in batches;
another run embeds the remaining notes, and no note twice. The vectors of the first model stay, and
so does every state of the past.
"""

import argparse
import hashlib
import multiprocessing
import os
import signal
import sys
import tempfile
from pathlib import Path

import cerata
from cerata.engine.events import PutEmbedding

BATCH = 50


def model(revision: str, dies_after: int | None = None) -> cerata.CallableEmbedder:
    """Return a toy: each word adds to one of 16 numbers; dies after ``dies_after`` texts."""
    count = 0

    def embed(texts: list[str]) -> list[list[float]]:
        nonlocal count
        if dies_after is not None and count >= dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        count += len(texts)
        return [_counts(text, revision) for text in texts]

    return cerata.CallableEmbedder(embed, name="toy", revision=revision, dimension=16)


def _counts(text: str, revision: str) -> list[float]:
    counts = [0.0] * 16
    for word in text.split():
        counts[hashlib.sha256(f"{revision} {word}".encode()).digest()[0] % 16] += 1
    return counts


def embed_anew(path: Path, dies_after: int | None = None) -> cerata.EmbeddedFrames:
    """Give every note without a vector of the second model such a vector."""
    with cerata.open(path, embedder=model("2", dies_after)) as store:
        return store.embeddings.fill(batch=BATCH)


def run(path: Path, notes: int) -> None:
    """Embed with both models, kill the second run, and check the file."""
    with cerata.open(path, embedder=model("1")) as store:
        store.put_frames([f"note {number} on topic {number % 7}" for number in range(notes)])
        start = store.head.seq
        chain = store.head.chain
    child = multiprocessing.get_context("spawn").Process(target=embed_anew, args=(path, notes // 2))
    child.start()
    child.join()
    print(f"killed with signal {-(child.exitcode or 0)}")
    rest = embed_anew(path)
    print(f"{rest.frames} of {notes} notes were left, and have a vector in {rest.space}")
    with cerata.open(path, mode="r") as store:
        frames = [event.body.frame for event in store.log() if isinstance(event.body, PutEmbedding)]
        assert frames == list(range(1, notes + 1)), "a note was embedded twice, or never"
        assert 0 < rest.frames < notes
        assert store.at(start).head.chain == chain
        remembered = store.embeddings.used()
        assert remembered is not None
        assert remembered.space == rest.space, "the file does not remember the second model"
        assert store.verify().ok
    print(
        f"{len(frames)} notes embedded again, each once; nothing before event {start} has changed"
    )


def main() -> int:
    """Run the example with the options of the command line."""
    parser = argparse.ArgumentParser(description="A second model takes over.")
    parser.add_argument("--notes", type=int, default=400, help="how many (400)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "notes.cera", options.notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
