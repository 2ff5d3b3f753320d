"""Runs over stored files: what is written, which parts are left out, the cache, the command."""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import cerata
from benchmarks.retrieval.command import main
from benchmarks.retrieval.embedding_cache import FILE_NAME, CachedEmbedder
from benchmarks.retrieval.ingest import Session, Style, ingest
from benchmarks.retrieval.judged_set import Corpus, Document, JudgedSet, Question
from benchmarks.retrieval.measurement import Settings, measure
from benchmarks.retrieval.metrics import evidence_name, mean
from benchmarks.retrieval.switches import switches, without
from benchmarks.retrieval.synthetic import synthetic_set
from cerata import Filter, InvalidInput, Profile
from cerata.retrieval.ranking.profile import PROFILES

from ..embedders import Hashing, HashingTokens

CORPUS: Final = synthetic_set().corpora[0]


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "where"),
    [
        ("track", Filter(track="session 2")),
        ("metadata", Filter(metadata={"session": "session 2"})),
        ("scope", Filter(scope={"session_id": "session 2"})),
    ],
)
def test_a_session_is_written_as_a_user_would(
    tmp_path: Path, style: Session, where: Filter
) -> None:
    """Every turn has its speaker, its time and its session."""
    stored = ingest(CORPUS, tmp_path / "a.cera", Style(session=style))
    turns = [document for document in CORPUS.documents if document.parent == "session 2"]
    with cerata.open(stored.path) as store:
        frames = sorted(store.frames(where), key=lambda frame: frame.id)
        found = [(stored.documents[frame.id], frame.text, frame.role) for frame in frames]
        assert found == [(turn.id, turn.text, turn.role) for turn in turns]
        assert {frame.created for frame in frames} == {turns[0].time}
    assert len(stored.documents) == len(CORPUS.documents)
    assert stored.size_bytes == stored.path.stat().st_size


def test_a_session_as_a_frame_is_the_parent_and_no_document(tmp_path: Path) -> None:
    """The frame of the session is found by no judgement, so rankings leave the frame out."""
    stored = ingest(CORPUS, tmp_path / "a.cera", Style(session="parent"))
    with cerata.open(stored.path) as store:
        parents = {store.frame(frame).parent for frame in stored.documents}
        assert len(parents) == 6
        assert {store.frame(parent).text for parent in parents if parent} == {
            f"Session session {number}" for number in range(1, 7)
        }
    assert not parents & set(stored.documents)


def test_a_speaker_may_be_a_prefix(tmp_path: Path) -> None:
    """Stores without roles write the name into the text."""
    corpus = Corpus("c", (Document("d", "Hello.", role="Ana"), Document("e", " ")), ())
    stored = ingest(corpus, tmp_path / "a.cera", Style(speaker="prefix"))
    with cerata.open(stored.path) as store:
        [frame] = store.frames()
        assert (frame.text, frame.role) == ("Ana: Hello.", None)


# --- measuring -----------------------------------------------------------------------------------

TALK: Final = JudgedSet(
    "talk",
    (
        Corpus(
            "one",
            (
                Document("a", "The red kayak.", parent="1"),
                Document("b", "A kayak, and one more kayak.", parent="2"),
                Document("c", "Tea.", parent="2"),
            ),
            (
                Question("kayak", "kayak", {"b": 1.0, "c": 1.0}, category="boats"),
                Question("red", "red", {"a": 1.0}),
            ),
        ),
        Corpus("two", (Document("a", "Coffee."),), (Question("coffee", "coffee?", {"a": 1.0}),)),
    ),
)


def test_a_run_equals_a_calculation_by_hand() -> None:
    """The words find b before a, never c; the second corpus has a store of its own."""
    measurement = measure(TALK, Settings(profile="words", contexts=(200,)))
    kayak = measurement.scores["kayak"]
    assert (kayak["R@5"], kayak["session any@5"], kayak["in 200 tokens"]) == (0.5, 1.0, 0.5)
    assert round(kayak["nDCG@10"], 9) == round(float(1 / (1 + 1 / np.log2(3))), 9)
    assert measurement.scores["red"]["session R@10"] == 1.0
    assert measurement.scores["coffee"] == {
        **dict.fromkeys(("R@5", "R@10", "R@20", "nDCG@10"), 1.0),
        "in 200 tokens": 1.0,
    }
    assert measurement.categories == {"kayak": "boats"}
    assert (measurement.documents, len(measurement.seconds)) == (4, 3)
    assert [*measurement.profiles] == ["words 1"]
    assert all(second > 0 for second in measurement.seconds)


def test_runs_of_one_state_rank_alike() -> None:
    """The hash of all rankings shows that a change is none."""
    first = measure(TALK, Settings(contexts=()))
    assert first.digest == measure(TALK, Settings(contexts=())).digest
    assert first.digest != measure(TALK, Settings(contexts=()), Hashing()).digest


def test_an_ablation_leaves_out_each_part_in_turn() -> None:
    """Without its only lane a profile cannot run, and a part without effect changes no score."""
    settings = Settings(profile="words", ablate=True, contexts=())
    measurement = measure(TALK, settings)
    assert measurement.ablations == {"text": None}
    measurement = measure(TALK, Settings(ablate=True, contexts=()))
    assert measurement.ablations["test"] == measurement.scores


def test_the_default_profile_is_that_of_the_store() -> None:
    """The profile of a search that names none is ablated."""
    measurement = measure(TALK, Settings(without=("vectors",), contexts=(100,)), Hashing())
    [label] = measurement.profiles
    assert label.startswith("default without vectors ")
    assert "vectors" not in measurement.lanes


def test_contexts_by_session_hold_more_evidence_for_fewer_tokens() -> None:
    """A line of source for each turn took 11 tokens, as much as a short text."""
    budgets = (200, 500)
    whole, second = (
        measure(synthetic_set(), Settings(contexts=budgets, policy=policy))
        for policy in (None, "whole 2")
    )
    shares = [
        [mean([*run.scores.values()])[evidence_name(budget)] for budget in budgets]
        for run in (whole, second)
    ]
    assert shares[0][0] >= max(shares[1][0], 0.8)
    assert shares[0][1] > max(shares[1][1], 0.9)
    for budget in budgets:
        assert whole.costs[budget].entries > second.costs[budget].entries
        costs = whole.costs[budget], second.costs[budget]
        assert costs[0].tokens / costs[0].entries < costs[1].tokens / costs[1].entries
        assert whole.costs[budget].source <= 5
        assert second.costs[budget].source > 10
    assert whole.digest == second.digest


# --- switches ------------------------------------------------------------------------------------


def test_every_part_of_a_profile_that_is_on_is_a_switch() -> None:
    """A new lane or signal needs no change of the benchmark."""
    used = PROFILES["used"]
    assert switches(used) == ["text", "facts", "vectors", "late", *used.signals, "importance"]
    assert switches(Profile("p", 1, {"text": 1, "facts": 0})) == ["text"]


def test_a_profile_without_parts_says_so() -> None:
    """A result names the profile that it is of."""
    parts = ("late", "importance", *PROFILES["used"].signals)
    reduced = without(PROFILES["used"], *parts)
    assert reduced.name == " without ".join(("used", *parts))
    assert switches(reduced) == ["text", "facts", "vectors"]
    assert reduced.importance == 0.0


@pytest.mark.parametrize("name", ["rerank", "recency", "lane", "version"])
def test_a_part_that_is_off_or_unknown_is_refused(name: str) -> None:
    """A slip in the name of a signal would measure no change."""
    with pytest.raises(InvalidInput, match=f"'{name}'"):
        without(PROFILES["default"], name)
    with pytest.raises(InvalidInput, match="No lane runs"):
        without(PROFILES["words"], "text")


# --- the cache -----------------------------------------------------------------------------------


def test_a_cached_vector_equals_that_of_the_model(tmp_path: Path) -> None:
    """A second run asks no model, and its rankings are the same."""
    model = HashingTokens()
    cache = CachedEmbedder(model, tmp_path / "cache")
    texts = [document.text for document in CORPUS.documents]
    counts: list[tuple[int, int]] = []
    cache.warm(texts, lambda done, total: counts.append((done, total)))
    asked = len(set(texts))
    assert (cache.asked, counts[-1]) == (asked, (asked, asked))
    cache.close()

    again = CachedEmbedder(HashingTokens(), tmp_path / "cache")
    again.warm(texts)
    assert np.array_equal(again.embed(texts), model.embed(texts))
    for stored, fresh in zip(again.embed_tokens(texts), model.embed_tokens(texts), strict=True):
        assert np.array_equal(stored, fresh)
    again.load(texts[:5])
    assert again.asked == 0
    assert again.embed([]).shape == (0, model.identity.dimension)
    assert again.calls == 0  # a member of the model
    again.close()


def test_stores_with_and_without_the_cache_are_equal(tmp_path: Path) -> None:
    """The cache may change no score."""
    cache = CachedEmbedder(HashingTokens(), tmp_path)
    settings = Settings(contexts=())
    assert measure(TALK, settings, cache).digest == measure(TALK, settings, HashingTokens()).digest
    cache.close()


def test_another_space_is_cached_apart(tmp_path: Path) -> None:
    """A newer revision of a model must not get the older one's vectors."""
    for revision in ("1", "2"):
        cache = CachedEmbedder(Hashing(revision), tmp_path)
        cache.embed(["tea"])
        assert cache.asked == 1
        cache.close()


def test_a_cache_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """The remedy is to delete the file; no vector is made up."""
    path = tmp_path / FILE_NAME
    path.write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInput) as caught:
        CachedEmbedder(Hashing(), tmp_path)
    assert caught.value.where == str(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be used"):
        CachedEmbedder(Hashing(), tmp_path / "file")


def test_a_cached_vector_of_another_size_is_refused(tmp_path: Path) -> None:
    """A shortened row would be a vector of another text's numbers."""
    cache = CachedEmbedder(Hashing(), tmp_path)
    cache.embed(["tea"])
    cache._file.execute("UPDATE vectors SET data = x'00'")
    cache._file.commit()
    cache.close()
    cache = CachedEmbedder(Hashing(), tmp_path)
    with pytest.raises(InvalidInput, match="another size"):
        cache.embed(["tea"])
    cache.close()


# --- the command ---------------------------------------------------------------------------------


def judged_file(folder: Path) -> Path:
    lines: list[dict[str, Any]] = []
    for document in CORPUS.documents:
        lines.append({"document": {"id": document.id, "text": document.text}})
    for question in CORPUS.questions:
        members = {"id": question.id, "text": question.text, "relevant": dict(question.relevant)}
        lines.append({"query": members})
    path = folder / "set.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_the_command_prints_scores_an_ablation_and_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole way: a judged file, a saved run, and the difference to it."""
    path, saved = judged_file(tmp_path), tmp_path / "run.json"
    assert main(["judged", str(path), "--save", str(saved), "--contexts", "300"]) == 0
    shown = capsys.readouterr()
    assert "R@10" in shown.out
    assert "in 300 tokens" in shown.out
    assert "time of a question" in shown.out
    assert "set 1 of 1: all, 90 documents, 30 questions" in shown.err
    arguments = ["judged", str(path), "--against", str(saved), "--profile", "words", "--ablate"]
    assert main([*arguments, "--contexts", "0"]) == 0
    shown = capsys.readouterr()
    assert "no lane can run" in shown.out
    assert main(["judged", str(path), "--against", str(saved), "--ablate", "--contexts", "0"]) == 0
    shown = capsys.readouterr()
    assert "no effect: " in shown.out
    assert "+0.0 [+0.0, +0.0]" in shown.out


def test_the_report_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress goes to the standard error, so that the output can be piped."""
    assert main(["synthetic", "--json", "--contexts", "500", "--ablate"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["documents"] == 186
    assert report["scores"]["all"]["questions"] == 60
    assert report["scores"].keys() == {"all", "how many", "when", "where", "why"}
    assert report["milliseconds"]["mean"] > 0
    assert report["ablation"].keys() == {
        "text",
        "facts",
        "vectors",
        "late",
        *PROFILES["default"].signals,
    }
    assert report["against"] is None
    assert "Python" in report["machine"][1]


def test_faults_end_the_command_with_their_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script can tell a missing file from a bad set."""
    assert main(["judged", str(tmp_path / "none")]) == 6
    assert main(["synthetic", "--profile", "none"]) == 2
    assert main(["synthetic", "--without", "text,recency"]) == 2
    assert main(["synthetic", "--signal", "nuon=1"]) == 2
    saved = tmp_path / "run.json"
    assert main(["judged", str(judged_file(tmp_path)), "--save", str(saved)]) == 0
    assert main(["synthetic", "--against", str(saved)]) == 2
    errors = capsys.readouterr().err
    assert "NotFound: " in errors
    assert "There is no profile 'none'" in errors
    assert "no lane or signal 'recency'" in errors
    assert "There is no signal 'nuon'" in errors
    assert "The run is of the set set " in errors
    with pytest.raises(SystemExit):
        main(["synthetic", "--contexts", "many"])


def test_no_file_of_a_run_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are written into a temporary folder, which goes with the run."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    measure(TALK, Settings(contexts=()))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.minilm
def test_minilm_is_asked_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second run takes its vectors from the cache, and ranks the same."""
    arguments = ["synthetic", "--embedder", "minilm-tokens", "--cache", str(tmp_path), "--json"]
    results: list[dict[str, Any]] = []
    for _ in range(2):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        results.append({**json.loads(shown.out), "is_embedded": "texts embedded" in shown.err})
    assert results[0]["rankings"] == results[1]["rankings"]
    assert [result["is_embedded"] for result in results] == [True, False]
    assert results[0]["lanes"] == ["text", "facts", "vectors", "late"]
