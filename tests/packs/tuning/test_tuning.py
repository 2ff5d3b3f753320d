"""Tuning: weights fit judged questions, and the gain is that of questions that taught nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import cerata
from cerata import InvalidInput, Judgement, NotFound, Profile, Store, Tuning
from cerata.memory.snapshot.reader import snapshot_of
from cerata.packs.tuning.candidates import DEPTH, Candidates, candidates_of, folds_of
from cerata.packs.tuning.tuning import judged_questions
from cerata.retrieval.ranking.profile import LANES, PROFILES
from cerata.retrieval.ranking.signals import SIGNALS

WORDS = ("harbour", "mill", "ferry", "salt", "bridge", "kiln", "dune", "grove")
PEOPLE = ("Mina", "Olaf", "Ines")
PLAIN = Profile("plain", 1, {"text": 1})

Asked = list[Judgement]


def conversations(store: Store, count: int, *, of_questions: Sequence[bool]) -> Asked:
    """Put conversations, and return judgements: turns that are questions are relevant, or are not.

    Every turn has the word of its question, so words alone cannot tell them apart.
    """
    judgements: Asked = []
    for number in range(count):
        is_question = of_questions[number % len(of_questions)]
        for word in WORDS:
            turns = [
                store.put_frame(
                    f"{word} and {number}{'?' if place % 2 else '.'}",
                    role=PEOPLE[place % 3],
                    options=cerata.PutOptions(track=f"{number} {word} {place}"),
                )
                for place in range(6)
            ]
            relevant = [f"#{turn.id}" for turn in turns[1 if is_question else 0 :: 2]]
            judgements.append(Judgement(f"{word} {number}", relevant, f"conversation {number}"))
    return judgements


def tune(store: Store, judgements: Any, **options: Any) -> Tuning:
    return cerata.tuning.tune(store, judgements, profile=options.pop("profile", PLAIN), **options)


def test_planted_weights_are_recovered_on_held_out_groups() -> None:
    """Only the signal tells relevant turns apart, and its weight is 0 at first."""
    with cerata.open(":memory:") as store:
        judgements = conversations(store, 4, of_questions=[True])
        tuning = tune(store, judgements)
        recall, gain = tuning.gains
        assert tuning.profile.signals["question"] > 0.1
        assert gain.metric == "nDCG@10"
        assert gain.change > 0.1
        assert gain.low > 0
        assert recall.change >= 0
        assert tuning.improves
        assert tuning.is_sure
        assert (tuning.groups, tuning.folds, tuning.questions) == (4, 4, 32)


def test_a_held_out_group_teaches_nothing() -> None:
    """Two groups contradict each other: weights from one lower the order of the other.

    If the held-out group leaked, the weights would cancel out, and nothing would be lost.
    """
    with cerata.open(":memory:") as store:
        judgements = conversations(store, 2, of_questions=[True, False])
        tuning = tune(store, judgements)
        assert tuning.gains[1].change < -0.1
        assert not tuning.improves


def test_weights_of_a_fold_do_not_depend_on_its_judgements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each list that a fold learns from is of another group."""
    seen: list[int] = []

    def learned(_self: object, lists: Sequence[object]) -> Profile:
        seen.append(len(lists))
        return PLAIN

    monkeypatch.setattr("cerata.packs.tuning.tuning.Learner.learned", learned)
    with cerata.open(":memory:") as store:
        tune(store, conversations(store, 3, of_questions=[True]))
    assert seen == [16, 16, 16, 24]


def candidates(store: Store, judgements: Asked, profile: Profile) -> list[Candidates]:
    questions, _ = judged_questions(snapshot_of(store), judgements, profile, "")
    return [candidates_of(question) for question in questions]


def profiles(seed: int) -> list[Profile]:
    """Return built-in profiles, and some of random weights."""
    source = Random(seed)
    drawn = [
        Profile(
            f"drawn {number}",
            1,
            {"text": 1, **{lane: round(source.random(), 3) for lane in LANES[1:]}},
            signals={name: round(source.uniform(-2, 2), 3) for name in SIGNALS},
        )
        for number in range(5)
    ]
    return [PLAIN, PROFILES["default"], PROFILES["continuity"], *drawn]


def test_orders_of_candidates_are_those_of_a_search(seed: int) -> None:
    """The gain is measured by sums of stored parts; a search must give the same order."""
    source = np.random.default_rng(seed)
    with cerata.open(":memory:") as store:
        judgements = conversations(store, 2, of_questions=[True])
        for frame in [*store.frames()][:40]:
            store.put_frame(
                frame.text,
                role="Mina",
                vectors=cerata.Vectors(dense=source.normal(size=3), space="toy"),
            )
        mina = store.put_frame("Mina lives at the mill")
        store.assert_fact("mina", "lives at", "mill", evidence=[mina.id])
        judgements.append(Judgement("When did Mina see the mill today?", [mina.id]))
        for profile in profiles(seed):
            for each in candidates(store, judgements, profile):
                text = each.question.request.text
                hits = store.search(
                    text, k=DEPTH, profile=profile, page=cerata.Page(group_by="frame")
                )
                assert each.order(profile) == [hit.id for hit in hits] == [*each.before]


def test_a_lane_without_vectors_keeps_its_weight() -> None:
    """The learned profile may serve the same memory with an embedder, later."""
    with cerata.open(":memory:") as store:
        tuning = tune(store, conversations(store, 3, of_questions=[True]), profile=None)
        default = PROFILES["default"]
        assert tuning.base == default.label
        assert tuning.profile.running == default.running
        assert tuning.profile.label == "tuned 1"


def test_a_learned_profile_has_no_importance() -> None:
    """The gain is against the order in use, in which used frames move up."""
    with cerata.open(":memory:") as store:
        tuning = tune(
            store, conversations(store, 3, of_questions=[True]), profile="used", name="me"
        )
        assert tuning.base == "used 1"
        learned = tuning.profile
        assert (learned.name, learned.importance) == ("me", 0.0)


REPEATED = """
import json, sys
import cerata
from tests.packs.tuning.test_tuning import conversations, tune
with cerata.open(":memory:") as store:
    judgements = conversations(store, 3, of_questions=[True, True, False])
    print(json.dumps(tune(store, judgements).to_dict()))
"""


def test_two_processes_learn_the_same() -> None:
    """Order of sets and seeds of hashes decide nothing."""
    outcomes = {
        subprocess.run(
            [sys.executable, "-c", REPEATED],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONPATH": ".", "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outcomes) == 1
    assert json.loads(outcomes.pop())["profile"]["signals"]


# --- groups ---------------------------------------------------------------------------------------


def test_a_group_is_in_one_fold() -> None:
    """A larger number of groups than folds joins groups, never divides one."""
    groups = [f"group {number % 23}" for number in range(100)]
    folds = folds_of(groups, [str(number) for number in range(100)])
    assert {*folds} == {*range(10)}
    assert len({*zip(groups, folds, strict=True)}) == 23
    assert max(folds.count(fold) for fold in range(10)) <= 2 * 100 // 10


def test_a_single_group_is_divided_by_its_queries() -> None:
    """The division depends on the text alone, so a further query moves no other."""
    queries = [f"query {number}" for number in range(60)]
    folds = dict(zip(queries, folds_of(["all"] * 60, queries), strict=True))
    assert len({*folds.values()}) == 5
    together = [{query for query in queries if folds[query] == fold} for fold in range(5)]
    fewer = folds_of(["all"] * 59, queries[:-1])
    for fold in range(5):
        members = {query for query, of in zip(queries, fewer, strict=False) if of == fold}
        assert any(members <= group for group in together)


def test_the_default_group_is_the_conversation_or_the_day() -> None:
    """Questions about one conversation share their words."""
    with cerata.open(":memory:") as store:
        turns = [
            store.put_frame(
                f"turn {place}", role="Mina", options=cerata.PutOptions(track=f"walk {place // 5}")
            )
            for place in range(10)
        ]
        note = store.put_frame("a note", options=cerata.PutOptions(created="2024-05-06"))
        asked = [Judgement(f"turn {place}", [turn.id]) for place, turn in enumerate(turns)]
        questions, _ = judged_questions(
            snapshot_of(store), [*asked, Judgement("note", [note.id])], PLAIN, ""
        )
        names = [question.group for question in questions]
        assert names[:5] == [f"conversation of #{turns[0].id}"] * 5
        assert names[5:10] == [f"conversation of #{turns[5].id}"] * 5
        assert names[10] == "day 2024-05-06"


# --- judgements -----------------------------------------------------------------------------------


def line(text: str, relevant: object, **members: object) -> str:
    return json.dumps({"query": {"text": text, "relevant": relevant, **members}})


def test_names_are_ids_and_uris_and_mean_chunks() -> None:
    """A document is found by a chunk; each is one relevant item."""
    with cerata.open(":memory:") as store:
        text = "\n\n".join(f"# Part {part}\n\n{'the harbour bridge ' * 80}" for part in range(5))
        document = store.remember(text, title="Bridge")
        page = store.put_frame("the mill", uri="notes/mill.md")
        lines = [line(f"harbour {number}", [f"#{document.id}"]) for number in range(9)]
        lines += ["", line("mill", {"notes/mill.md": 2, str(document.id): 1, "9999999": 0})]
        lines += ['{"document": {}}']
        questions, notices = judged_questions(snapshot_of(store), lines, PLAIN, "x")
        assert notices == []
        assert set(questions[0].items.values()) == {0}
        assert len(questions[0].items) > 2
        assert questions[9].items[page.id] == 0
        assert questions[9].grades == [2.0, 1.0]
        chunk, later = [*questions[9].items][2:4]
        assert questions[9].scores([chunk, later, page.id])[0] == 1.0


def test_a_further_chunk_of_a_document_counts_nothing() -> None:
    """Else a long document would gain more than a perfect order."""
    with cerata.open(":memory:") as store:
        text = "\n\n".join(f"# Part {part}\n\n{'the harbour bridge ' * 80}" for part in range(5))
        document = store.remember(text)
        lines = [line(f"harbour {number}", [document.id]) for number in range(10)]
        questions, _ = judged_questions(snapshot_of(store), lines, PLAIN, "x")
        assert questions[0].scores([*questions[0].items]) == (1.0, 1.0)
        assert questions[0].scores([]) == (0.0, 0.0)


def test_closed_frames_are_left_out_with_a_notice() -> None:
    """A search cannot find them."""
    with cerata.open(":memory:") as store:
        judgements = conversations(store, 3, of_questions=[True])
        old = store.put_frame("an old mill")
        store.delete(old)
        tuning = tune(store, [*judgements, Judgement("mill", [old.id])])
        assert tuning.questions == 24
        assert tuning.notices == (
            "1 relevant frames are no longer current, and left out",
            "1 queries without a relevant frame are left out",
        )


def test_a_scope_narrows_a_query() -> None:
    """Frames of another user neither compete nor answer."""
    with cerata.open(":memory:") as store:
        for user in ("ana", "ben"):
            of_user = store.scoped({"user": user})
            of_user.put_frame("the harbour mill")
        lines = [line(f"harbour {n}", ["#1"], scope={"user": "ana"}) for n in range(10)]
        questions, _ = judged_questions(snapshot_of(store), lines, PLAIN, "x")
        assert candidates_of(questions[0]).ids.tolist() == [1]
        with pytest.raises(NotFound, match="line 1") as caught:
            tune(store, [line("harbour", ["#1"], scope={"user": "ben"})], source="x")
        assert "There is no frame 1" in str(caught.value)


BAD_LINES = [
    ("{", "not JSON"),
    ("[]", "must be an object with a query"),
    ('{"query": 3}', "must be an object with a query"),
    ('{"query": {}}', "text is missing"),
    ('{"query": {"text": 3}}', "text must be a string"),
    (line("", ["#1"]), "The query is empty"),
    (line("a", 3), "relevant must map"),
    (line("a", {"#1": "high"}), "A grade must be"),
    (line("a", {"#1": -1}), "A grade must be"),
    ('{"query": {"text": "a", "relevant": {"#1": NaN}}}', "A grade must be"),
    ('{"query": {"text": "a", "relevant": {"#1": 1e999}}}', "A grade must be"),
    ('{"query": {"text": "a", "relevant": {"#1": ' + "9" * 5000 + "}}}", "not JSON"),
    (line("a", ["#1"], weight=3), "has no member 'weight'"),
    (line("a", ["#1"], group=3), "group must be a string"),
    (line("a", ["#1"], scope=["user"]), "scope must map"),
    (line("a", ["#99"]), "There is no frame 99"),
    (line("a", ["#" + "9" * 5000]), "There is no frame"),
    (line("a", ["nowhere.md"]), "No current frame has the URI 'nowhere.md'"),
    (line("\ud800", ["#1"]), "query"),
    (b"\xff", "not UTF-8"),
    ("x" * (1 << 20 | 1), "more than 1,048,576 bytes"),
]


@pytest.mark.parametrize(("bad", "fault"), BAD_LINES)
def test_a_bad_line_is_named_with_its_number(bad: str | bytes, fault: str) -> None:
    """A person repairs the line; nothing is learned from the rest."""
    with cerata.open(":memory:") as store:
        store.put_frame("a")
        with pytest.raises((InvalidInput, NotFound)) as caught:
            tune(store, [line("a", ["#1"]), "", bad], source="judged.jsonl")
    assert fault in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.startswith("judged.jsonl, line 3")
    assert caught.value.remedy


def test_documents_of_a_judged_set_are_passed_over() -> None:
    """Their members were refused, so no judged set could be passed as it is."""
    document = {"id": "t1", "text": "I moved.", "role": "Ana", "parent": "session 1"}
    with cerata.open(":memory:") as store:
        judgements = conversations(store, 2, of_questions=[True])
        lines = [line(each.query, [*each.relevant], group=each.group) for each in judgements]
        tuning = tune(store, [json.dumps({"document": document}), *lines])
        assert (tuning.questions, tuning.profile) == (16, tune(store, judgements).profile)


def test_a_value_of_another_type_is_refused() -> None:
    """Not every iterable is one of judgements."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="Judgement values"):
        tune(store, [3])


@pytest.mark.parametrize("relevant", [3, "#12", None, [2.5], {"#1": "x"}, [True]])
def test_relevant_frames_of_another_type_are_refused(relevant: Any) -> None:
    """A text is no list of its characters."""
    with pytest.raises(InvalidInput):
        Judgement("mill", relevant)


def test_frames_are_named_by_their_values(store: Store) -> None:
    """As in every other call."""
    receipt = store.put_frame("mill")
    frame = store.frame(receipt)
    assert Judgement("mill", [receipt]).grades == Judgement("mill", [frame]).grades == {1: 1.0}


@pytest.mark.parametrize("count", [0, 1, 9])
def test_too_few_queries_are_refused(count: int) -> None:
    """Their gain would be chance."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("mill")
        with pytest.raises(InvalidInput, match=f"{count} queries are judged.* needs 10"):
            tune(store, [Judgement(f"mill {number}", [frame.id]) for number in range(count)])


def test_queries_that_no_lane_answers_teach_nothing() -> None:
    """Relevant frames without a word of the question are no candidates."""
    with cerata.open(":memory:") as store:
        frame = store.put_frame("mill")
        with pytest.raises(InvalidInput, match="no judged query has a relevant frame"):
            tune(store, [Judgement(f"ferry {number}", [frame.id]) for number in range(20)])


def test_the_name_of_a_built_in_profile_is_refused() -> None:
    """A recorded recall names the profile, and "default 1" must mean one."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="built-in"):
        tune(store, [], name="default")


def test_an_unknown_profile_is_refused() -> None:
    """The nearest name helps."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="no profile 'defalt'"):
        tune(store, [], profile="defalt")


def test_the_earlier_place_names_the_new() -> None:
    """`cerata.tune` was public; a caller of it reads where it is now."""
    with pytest.raises(AttributeError, match=r"use cerata\.tuning\.tune"):
        _ = cerata.tune  # type: ignore[attr-defined]
    assert not hasattr(cerata, "nothing")
