"""The best turns by bounds equal those by the scores of all turns."""

import numpy as np
import pytest

from cerata.projections.columnar.columns import F64, I64
from cerata.projections.columnar.turn_order import TurnOrder, turn_order
from cerata.projections.fulltext.turns import context_kernel, pair_sums, turn_ranking
from cerata.projections.fulltext.turns.context_kernel import (
    DECAY,
    NEXT,
    PREVIOUS,
    Counts,
    Shares,
    summed,
)
from cerata.projections.fulltext.turns.pair_sums import PairSums, bounds_of_all
from cerata.projections.fulltext.turns.turn_ranking import TurnScores, turn_norms

K1 = 1.2
SCALE = K1 + 1.0


def order_of(source: np.random.Generator, rows: int) -> TurnOrder:
    """Return turns of several conversations, in any order."""
    order = turn_order(source.integers(-1, 5, rows), source.random(rows) < 0.9)
    assert order is not None
    return order


def in_pairs(norms: F64) -> F64:
    """Return norms of a whole number of pairs of places."""
    return np.append(norms, np.ones(len(norms) % 2))


def counts_of(source: np.random.Generator, order: TurnOrder, shares: list[float]) -> Counts:
    """Return the counts of words that so many turns have."""
    turns = np.flatnonzero(order.is_turn)
    parts = [turns[source.random(len(turns)) < share] for share in shares]
    counts = [source.choice([1, 1, 1, 2, 30], len(part)).astype(np.uint8) for part in parts]
    ends = np.cumsum([len(part) for part in parts])
    return Counts(ends, np.concatenate(parts), np.concatenate(counts))


def near_of(source: np.random.Generator, order: TurnOrder) -> F64:
    """Return the part of a share that counts, by pair: another for each conversation."""
    near = np.zeros((len(order.rows) + 1) // 2)
    turns = np.flatnonzero(order.is_turn)
    conversations = np.cumsum(np.diff(turns, prepend=turns[0]) > 1)
    near[turns >> 1] = (source.integers(0, 65, conversations[-1] + 1)[conversations] / 64) ** 2
    return near


def plain_sums(order: TurnOrder, places: I64, counts: F64, near: F64 | None = None) -> F64:
    """Return the sum of shares in each place, turn by turn."""
    own = dict(zip(places.tolist(), counts.tolist(), strict=True))
    sums = np.zeros(len(order.rows))
    for place in np.flatnonzero(order.is_turn).tolist():
        for step in range(6):
            sums[place] += PREVIOUS * DECAY**step * own.get(place - 1 - step, 0.0)
            sums[place] += NEXT * DECAY**step * own.get(place + 1 + step, 0.0)
        sums[place] *= 1.0 if near is None else near[place >> 1]
        sums[place] += own.get(place, 0.0)
    return sums


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("path", ["all", "few", "bounds"])
@pytest.mark.parametrize("has_parts", [False, True])
def test_the_best_turns_are_those_of_all_scores(
    seed: int, path: str, has_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to choose the turns to score finds the best, with equal scores."""
    source = np.random.default_rng(seed)
    order = order_of(source, 400)
    words = counts_of(source, order, [0.5, 0.02, 0.1, 0.3][: 1 + seed % 4])
    idfs = source.random(len(words.ends)) * 6 + 0.01
    norms = source.random(len(order.rows)) + 0.3
    near = near_of(source, order) if has_parts else None
    among = source.random(len(order.rows)) < 0.7 if seed % 3 == 0 else None
    expected = np.zeros(len(order.rows))
    starts = np.concatenate([[0], words.ends[:-1]])
    for idf, start, end in zip(idfs, starts, words.ends, strict=True):
        counts = words.counts[start:end].astype(np.float64)
        sums = plain_sums(order, words.places[start:end], counts, near)
        expected += idf * SCALE * sums / (sums + norms)
    if among is not None:
        expected *= among
    constants = {
        "_ALL_PLACES_MAX": 1 << 20 if path == "all" else 0,
        "_FEW": 1 << 20 if path == "few" else 0,
    }
    for name, value in constants.items():
        monkeypatch.setattr(turn_ranking, name, value)
    for k in (1, 5, 30, 1_000):
        asked = TurnScores(words, idfs, turn_norms(in_pairs(norms), order.is_turn, K1, near))
        places, scores = asked.best(k, among)
        assert (asked.at(places) == scores).all()
        assert len({*places.tolist()}) == len(places)
        assert scores == pytest.approx(expected[places], abs=1e-12)
        wanted = np.sort(expected[expected > 0])[::-1][:k]
        assert np.sort(scores)[::-1][:k] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("shares", [[0.2, 0.1, 0.04, 0.005], [0.3, 0.28, 0.26, 0.24, 0.22, 0.2]])
@pytest.mark.parametrize("has_parts", [False, True])
def test_bounds_leave_out_most_turns(shares: list[float], has_parts: bool) -> None:
    """Else the answer is right, and slow."""
    source = np.random.default_rng(7)
    order = order_of(source, 40_000)
    near = near_of(source, order) if has_parts else None
    words = counts_of(source, order, shares)
    # Words that a turn repeats 30 times are rare.
    words = words._replace(counts=np.minimum(words.counts, np.uint8(2)))
    norms = turn_norms(in_pairs(np.ones(len(order.rows))), order.is_turn, K1, near)
    idfs = np.log(1 / np.array(shares))
    places, _ = TurnScores(words, idfs, norms).best(10, None)
    assert 10 <= len(places) < 1_000


@pytest.mark.parametrize("has_parts", [False, True])
def test_sums_are_exact_in_any_order(has_parts: bool) -> None:
    """Parts of a share are whole numbers, so each way to add gives the same bits."""
    source = np.random.default_rng(3)
    order = order_of(source, 40_000)
    words = counts_of(source, order, [0.3])
    near = near_of(source, order) if has_parts else None

    def whole(own: F64) -> F64:
        if near is None:
            return summed(own)
        shared = own * np.repeat(near, 2)
        return summed(shared, own - shared)

    own = np.zeros(len(order.rows) + len(order.rows) % 2)
    own[words.places] = words.counts
    turns = np.flatnonzero(order.is_turn)
    pairs = np.unique(turns >> 1)
    (some,) = PairSums(words, len(own) // 2, near).at(pairs)
    of_pairs = np.zeros(len(own))
    of_pairs.reshape(-1, 2)[pairs] = some.reshape(-1, 2)
    assert (of_pairs == whole(own))[turns].all()
    ((dense,),) = words.spread(len(own), near)
    assert (dense == whole(own))[turns].all()
    few = words.places[:100]
    reached, sums = Shares(len(own), near).spread(few, words.counts[:100].astype(np.float64))
    own[:] = 0.0
    own[few] = words.counts[:100]
    assert (sums == whole(own)[reached])[np.isin(reached, turns)].all()
    counts = Counts(np.array([100]), few, words.counts[:100])
    ((sparse,),) = counts.spread(len(own), near)
    assert (sparse == whole(own))[turns].all()


@pytest.mark.parametrize("rows", range(1, 40))
def test_sums_reach_the_ends(rows: int) -> None:
    """The first and last turns, and those at the ends of a block, have all their shares."""
    order = turn_order(np.zeros(rows, np.int64), np.ones(rows, np.bool_))
    assert order is not None
    counts = np.arange(1, rows + 1, dtype=np.uint8)
    turns = np.flatnonzero(order.is_turn)
    expected = plain_sums(order, turns, counts.astype(np.float64))
    own = np.zeros(len(order.rows))
    own[turns] = counts
    assert summed(own)[turns] == pytest.approx(expected[turns])
    pairs = np.arange(3, (len(own) + 1) // 2 - 3)
    (sums,) = PairSums(Counts(np.array([rows]), turns, counts), (len(own) + 1) // 2, None).at(pairs)
    assert sums[turns - 6] == pytest.approx(expected[turns])
    for block in (13, 14, rows + 11, rows + 12):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(context_kernel, "_BLOCK_PLACES", block)
            assert summed(own)[turns] == pytest.approx(expected[turns])


@pytest.mark.parametrize("kept", [1, 3_000, 1 << 23])
def test_sums_are_equal_whether_or_not_rows_are_kept(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many words only the first stay in memory."""
    source = np.random.default_rng(5)
    order = order_of(source, 900)
    words = counts_of(source, order, [0.3, 0.01, 0.2, 0.0, 0.1])
    pair_count = (len(order.rows) + 1) // 2
    pairs = np.flatnonzero(order.is_turn[1::2])
    monkeypatch.setattr(pair_sums, "_ROWS_BYTES", kept)
    sums = PairSums(words, pair_count, None)
    for _ in range(2):
        of_pairs = sums.at(pairs)
        starts = np.concatenate([[0], words.ends[:-1]])
        for word, (start, end) in enumerate(zip(starts, words.ends, strict=True)):
            own = np.zeros(2 * pair_count)
            own[words.places[start:end]] = words.counts[start:end]
            expected = summed(own).reshape(-1, 2)[pairs]
            assert (of_pairs[word].reshape(-1, 2) == expected).all()
            assert (sums.of_word(word, pairs) == expected).all()


@pytest.mark.parametrize("rows", [*range(1, 90), 20_000, 70_000])
def test_no_sum_exceeds_the_bound_of_its_pair(rows: int) -> None:
    """Also at the ends of runs and of products; a count has the share of its nearest place."""
    source = np.random.default_rng(rows)
    order = turn_order(np.zeros(rows, np.int64), np.ones(rows, np.bool_))
    assert order is not None
    pair_count = (len(order.rows) + 1) // 2
    weighted = np.zeros(2 * pair_count)
    weighted[np.flatnonzero(order.is_turn)] = source.integers(0, 4, rows)
    bounds = bounds_of_all(weighted.reshape(-1, 2))
    pairs = weighted.reshape(-1, 2).sum(axis=1)
    nearest = DECAY ** (2 * np.arange(3))
    expected = pairs.copy()
    for step, share in enumerate(nearest, start=1):
        expected[step:] += PREVIOUS * share * pairs[:-step]
        expected[:-step] += NEXT * share * pairs[step:]
    inside = slice(3, -3)
    assert bounds[inside] == pytest.approx(expected[inside], rel=1e-5)
    assert not bounds[:3].any()
    assert not bounds[-3:].any()
    sums = summed(weighted).reshape(-1, 2).max(axis=1)
    assert (sums[inside] <= bounds[inside] * (1 + 1e-5)).all()
