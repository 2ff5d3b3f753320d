"""Recorded recalls under two settings: asked again at their basis, and compared."""

from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.memory.search.recall_rerun import RecallSettings
from cerata.memory.store import Store
from cerata.packs.experiments.recall_comparison import compare_recalls, settings_of

QUESTION = "when does the bridge open?"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with cerata.open(tmp_path / "a.cera") as store:
        store.put_frames(
            [f"The bridge opens in May, says note {n}. " * (1 + n % 4) for n in range(40)]
        )
        yield store


def numbers(context: cerata.Context) -> list[int]:
    return [number for item in context.items for number in (item.id, *item.joined)]


def test_without_a_setting_every_recall_is_the_same(store: Store) -> None:
    """Also after later events, which competed with the recorded entries."""
    store.recall(QUESTION, record=True)
    store.recall(
        "note 7", policy="tiered", record=True, layout=cerata.Layout(order="time", framing=True)
    )
    store.recall(
        "bridge",
        max_tokens=200,
        record=True,
        layout=cerata.Layout(form="markdown"),
        profile=cerata.Ranking(mode="text"),
    )
    store.put_frames([f"The bridge opens in June, says letter {n}." for n in range(20)])
    compared = compare_recalls(store, RecallSettings())
    assert [change.seq for change in compared.recalls] == [41, 42, 43]
    assert all(change.same and change.repeated for change in compared.recalls)
    assert compared.differing == ()
    totals = compared.totals
    assert totals["tokens_before"] == totals["tokens_after"]
    assert (totals["added"], totals["dropped"], totals["moved"]) == (0, 0, 0)


def test_a_change_is_that_of_the_two_contexts(store: Store) -> None:
    """Entries, ranks and tokens are those of recalls asked by hand at the basis."""
    recorded = store.recall(QUESTION, max_tokens=600, record=True)
    store.put_frame("The bridge opens later.")
    settings = RecallSettings(max_tokens=200, order="time", policy="tiered")
    (change,) = compare_recalls(store, settings).recalls
    view = store.at(recorded)
    after = view.recall(
        QUESTION,
        max_tokens=200,
        policy="tiered",
        layout=cerata.Layout(order="time"),
        profile=cerata.Ranking(mode="text"),
    )
    shown, shown_after = numbers(recorded), numbers(after)
    assert (change.basis, change.query, change.same) == (recorded.basis, QUESTION, False)
    assert change.repeated
    assert {*change.dropped} == {*shown} - {*shown_after}
    assert {*change.added} == {*shown_after} - {*shown}
    assert {number: (old, new) for number, old, new in change.moved} == {
        number: (shown.index(number) + 1, shown_after.index(number) + 1)
        for number in {*shown} & {*shown_after}
        if shown.index(number) != shown_after.index(number)
    }
    assert (change.tokens_before, change.tokens_after) == (recorded.tokens, after.tokens)


def test_two_settings_replace_the_recorded_ones(store: Store) -> None:
    store.recall(QUESTION, record=True)
    small, large = RecallSettings(max_tokens=150), RecallSettings(max_tokens=400)
    (there,) = compare_recalls(store, large, small).recalls
    (back,) = compare_recalls(store, small, large).recalls
    assert there.added == back.dropped != ()
    assert (there.tokens_before, there.tokens_after) == (back.tokens_after, back.tokens_before)
    assert not there.repeated


def test_vectors_and_scores_of_the_recording_are_used(tmp_path: Path) -> None:
    """No model is called: none is here."""
    with cerata.open(tmp_path / "v.cera") as store:
        for n in range(12):
            store.put_frame(f"note {n}", vectors=cerata.Vectors(dense=[1.0, n / 12], space="s/2"))
        store.recall(
            "tea", floor=False, record=True, vectors=cerata.Vectors(dense=[1.0, 0.5], space="s/2")
        )
        (change,) = compare_recalls(store, RecallSettings()).recalls
        assert change.same
        assert change.repeated
        (change,) = compare_recalls(store, RecallSettings(mode="text")).recalls
        assert not change.same


def test_a_recall_that_cannot_be_repeated_is_counted(store: Store) -> None:
    """With a filter, or with a profile that the file does not have."""
    mine = cerata.Profile.from_dict({"name": "mine", "version": 1, "weights": {"text": 1}})
    store.recall(QUESTION, where=cerata.Filter(tags=["none"]), record=True)
    store.recall(QUESTION, profile=mine, record=True)
    compared = compare_recalls(store, RecallSettings())
    assert (compared.recalls, compared.skipped) == ((), 2)
    replaced = RecallSettings(profile=mine)
    compared = compare_recalls(store, replaced, replaced)
    assert ([change.same for change in compared.recalls], compared.skipped) == ([True], 1)


def test_a_view_has_the_recalls_before_its_basis(store: Store) -> None:
    store.recall(QUESTION, record=True)
    basis = store.head.seq
    store.recall("bridge", record=True)
    assert len(compare_recalls(store.at(basis), RecallSettings()).recalls) == 1
    seen: list[tuple[str, int, int]] = []

    def see(what: str, done: int, total: int) -> None:
        seen.append((what, done, total))

    compare_recalls(store, RecallSettings(), progress=see)
    assert seen == [("asking", 1, 2), ("asking", 2, 2)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"polcy": "tiered"}, "polcy"),
        ({"policy": "tierd"}, "tierd"),
        ({"policy": {"name": "mine"}}, "has no version"),
        ({"policy": {"name": "mine", "version": 1, "days": 1}}, "days"),
        ({"profile": "wrds"}, "wrds"),
        ({"profile": {"name": "mine"}}, "has no version"),
        ({"max_tokens": 0}, "budget"),
        ({"max_tokens": "many"}, "budget"),
        ({"form": "html"}, "form"),
        ({"order": "best"}, "order"),
        ({"mode": "words"}, "words"),
        ({"framing": 1}, "framing"),
        ({"include_superseded": "yes"}, "include_superseded"),
        ({"neighbours": -1}, "neighbours"),
    ],
)
def test_a_wrong_setting_is_refused_before_any_question(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(cerata.InvalidInput, match=message):
        settings_of(values)


def test_tables_of_a_file_are_a_policy_and_a_profile() -> None:
    settings = settings_of(
        {
            "policy": {"name": "mine", "version": 2, "tier_days": [1, 30], "shorten": True},
            "profile": {"name": "mine", "version": 3, "weights": {"text": 1}},
        }
    )
    assert isinstance(settings.policy, cerata.ContextPolicy)
    assert (settings.policy.label, settings.policy.tier_days) == ("mine 2", (1, 30))
    assert isinstance(settings.profile, cerata.Profile)
    assert settings.profile.label == "mine 3"
