"""The encoder and the predictor of Dynamics, in integers: equal on every machine.

Owns the arithmetic. Numbers are Q16 (16 bits of fraction), weights Q20; a shift rounds to nearest,
a division rounds down. No sum of products leaves 64 bits: inputs are below 2^20, weights at most
2^31.

- The encoder is fixed: each of 64 states is the sum of 3 features with weights of ±1, and 0 if that
  is negative. The weights follow from a constant.
- The predictor of the next state of a session is the running mean of the states, plus a linear map
  of 68 inputs: the deviations of the 64 states from the mean, the user's length, the density of
  questions, the ratio of lengths, and 1.
- It learns by normalised least mean squares (B. Widrow and M. E. Hoff, Adaptive switching circuits,
  1960; the normalised form of J. Nagumo and A. Noda, 1967) with a rate of 1/32.
"""

from typing import Final, NamedTuple

import numpy as np
from blake3 import blake3

from cerata.projections.columnar.columns import I64

from .features import FEATURES, ONE

STATES: Final = 64
INPUTS: Final = STATES + 4
SCORES: Final = 256
"""Exchanges whose surprises are kept."""

SURPRISING_AFTER: Final = 32
"""Exchanges before one may be surprising; ours."""

_OF_STATE: Final = 3
_SEED: Final = b"cerata dynamics 1"
_WEIGHT_BITS: Final = 20
_RATE_BITS: Final = 5
_LOSS_BITS: Final = 6
_STATE_MAX: Final = _OF_STATE * 3 * ONE
_WEIGHT_MAX: Final = (1 << 31) - 1
_SURPRISE_MAX: Final = (1 << 32) - 1
_FRACTION: Final = 16

_SCORE: Final = np.dtype(
    [("exchange", "<u8"), ("frozen", "<u4"), ("learned", "<u4"), ("available", "<u4")]
)


class Scored(NamedTuple):
    """The surprises of an exchange: mean squared errors over the states, in Q16."""

    exchange: int
    """The frame of its first message."""
    frozen: int
    """The error of the running mean alone."""
    learned: int
    """The error of the predictor; equal to ``frozen`` for the first exchange of a session."""
    available: int
    """A bit for each feature with a value."""
    is_surprising: bool
    """True from the 90th percentile of the surprises before."""
    persistent: int | None
    """The error of the session's state before, None without a state before."""


class Sequel(NamedTuple):
    """The inputs of a session's next prediction; a part of rows."""

    state: bytes = b""
    """The 64 states of the last exchange; empty before the first."""
    length: int = 0
    density: int = 0
    ratio: int = 0


class PredictorState(NamedTuple):
    """A predictor as bytes and numbers; a part of rows."""

    sums: bytes = bytes(8 * STATES)
    exchanges: int = 0
    weights: bytes = bytes(4 * STATES * INPUTS)
    scores: bytes = b""
    loss: int = 0
    updates: int = 0


class Predictor:
    """A predictor that learns from exchanges, one after the other."""

    def __init__(self, state: PredictorState) -> None:
        self._sums: I64 = np.frombuffer(state.sums, "<i8").astype(np.int64)
        self._count = state.exchanges
        weights = np.frombuffer(state.weights, "<i4").astype(np.int64)
        self._weights: I64 = weights.reshape(STATES, INPUTS)
        self._scores = np.frombuffer(state.scores, _SCORE)
        self._loss = state.loss
        self._updates = state.updates

    @property
    def state(self) -> PredictorState:
        """The state, from which an equal predictor can be made."""
        return PredictorState(
            self._sums.astype("<i8").tobytes(),
            self._count,
            self._weights.astype("<i4").tobytes(),
            self._scores.tobytes(),
            self._loss,
            self._updates,
        )

    def take(self, exchange: int, z: I64, available: int, before: Sequel) -> tuple[Scored, bytes]:
        """Score an exchange, learn from it, and return the scores and its 64 states.

        Args:
            exchange: The frame of its first message.
            z: The z-scores of its features, Q16; (24,).
            available: A bit for each feature with a value.
            before: The exchange of the session before.
        """
        state: I64 = np.maximum(_ENCODER @ z, 0)
        mean: I64 = self._sums // max(self._count, 1)
        frozen = learned = _surprise(state - mean)
        persistent = None
        if before.state:
            last: I64 = np.frombuffer(before.state, "<i4").astype(np.int64)
            persistent = _surprise(state - last)
            inputs = np.concatenate(
                (last - mean, (before.length, before.density, before.ratio, ONE))
            )
            change = _rounded(self._weights @ inputs, _WEIGHT_BITS)
            error: I64 = state - np.clip(mean + change, 0, _STATE_MAX)
            learned = _surprise(error)
            self._learn(error, inputs)
        scored = Scored(
            exchange, frozen, learned, available, self._is_surprising(learned), persistent
        )
        self._sums = self._sums + state
        self._count += 1
        self._keep(scored)
        return scored, state.astype("<i4").tobytes()

    def _learn(self, error: I64, inputs: I64) -> None:
        power = (int(inputs @ inputs) >> _FRACTION) + ONE
        steps: I64 = (error << _WEIGHT_BITS) // power
        change = _rounded(np.outer(steps, inputs), _FRACTION + _RATE_BITS)
        self._weights = np.clip(self._weights + change, -_WEIGHT_MAX, _WEIGHT_MAX)
        self._updates += 1

    def _is_surprising(self, learned: int) -> bool:
        earlier = np.sort(self._scores["learned"])
        count = len(earlier)
        return count >= SURPRISING_AFTER and learned >= int(earlier[9 * count // 10])

    def _keep(self, scored: Scored) -> None:
        is_first = not len(self._scores)
        self._loss += scored.learned if is_first else (scored.learned - self._loss) >> _LOSS_BITS
        row = np.array([scored[:4]], _SCORE)
        self._scores = np.concatenate((self._scores[-(SCORES - 1) :], row))


def scores_of(data: bytes) -> list[tuple[int, int, int, int]]:
    """Return the exchange, the two surprises and the available features of each kept score."""
    return [
        (int(exchange), int(frozen), int(learned), int(available))
        for exchange, frozen, learned, available in np.frombuffer(data, _SCORE).tolist()
    ]


def _encoder() -> I64:
    """Return the weights of the encoder, from the bytes of a hash; (64, 24) of −1, 0 and 1."""
    weights = np.zeros((STATES, len(FEATURES)), np.int64)
    data = iter(blake3(_SEED).digest(16 * STATES))
    for row in weights:
        while np.count_nonzero(row) < _OF_STATE:
            byte = next(data)
            row[(byte >> 1) % len(FEATURES)] = 1 if byte & 1 else -1
    return weights


_ENCODER: Final = _encoder()


def _rounded(values: I64, bits: int) -> I64:
    """Return values divided by 2^bits, rounded to nearest."""
    rounded: I64 = (values + (1 << (bits - 1))) >> bits
    return rounded


def _surprise(error: I64) -> int:
    """Return the mean square of an error over the states, in Q16."""
    return min(int(error @ error) // STATES >> _FRACTION, _SURPRISE_MAX)
