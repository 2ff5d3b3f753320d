"""The guard over all sets: its rules, the table, and the command on a folder of small sets."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.retrieval import marks, sqlite_peer
from benchmarks.retrieval.asking import Asking, Row
from benchmarks.retrieval.command import main
from benchmarks.retrieval.embedding_cache import CachedEmbedder
from benchmarks.retrieval.folder_set import FolderScores, words_of_one
from benchmarks.retrieval.guard import EMBEDDER_LOSS, PEER_LOSS, guard
from benchmarks.retrieval.judged_set import Corpus, Document, JudgedSet, Question
from benchmarks.retrieval.synthetic import synthetic_documents, synthetic_set
from cerata import InvalidInput, NotFound

from .concepts import Concepts, ConceptTokens

SETS: Final = {"conversations": synthetic_set(), "documents": synthetic_documents()}


def quiet(_: str) -> None:
    """Take a line of progress."""


def rows_of(judged: JudgedSet, profile: str | None, embedders: Mapping[str, Any]) -> list[Row]:
    asking = Asking(judged, judged.name, profile=profile, quick=True)
    return [asking.row(name, embedder, quiet) for name, embedder in embedders.items()]


def failures(rows: list[Row]) -> list[str]:
    return [line.text for line in guard(rows) if not line.passes]


# --- embedders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("judged", SETS)
@pytest.mark.parametrize("profile", [None, "words", "continuity", "used"])
def test_no_embedder_lowers_a_shipped_profile(judged: str, profile: str | None) -> None:
    embedders = {"none": None, "pooled": Concepts(), "tokens": ConceptTokens()}
    assert failures(rows_of(SETS[judged], profile, embedders)) == []


# --- rules ---------------------------------------------------------------------------------------


def row(system: str, score: float, **fields: Any) -> Row:
    scores: dict[str, float] = {"R@1": score, "R@10": score, "nDCG@10": score}
    return Row("set", system, each={"q": scores}, **fields)


def test_an_embedder_may_lower_a_score_by_0_3_points() -> None:
    """A question or two in a thousand may change."""
    plain = row("none", 0.5)
    assert failures([plain, row("a", 0.5 - EMBEDDER_LOSS + 1e-9)]) == []
    assert len(failures([plain, row("a", 0.5 - EMBEDDER_LOSS - 1e-9)])) == 2
    assert failures([row("a", 0.1)]) == []


def test_no_ranking_may_be_below_the_best_tokenizer_by_more_than_0_5_points() -> None:
    peers = [row("fts5 porter", 0.4), row("fts5 trigram", 0.5)]
    assert failures([*peers, row("none", 0.5 - PEER_LOSS + 1e-9)]) == []
    assert failures([*peers, row("none", 0.49)]) == [
        "FAIL  set, none: R@10 is not below FTS5: 49.0, fts5 trigram 50.0",
        "FAIL  set, none: nDCG@10 is not below FTS5: 49.0, fts5 trigram 50.0",
    ]


def test_at_most_2_of_100_answerable_questions_get_nothing() -> None:
    assert failures([row("none", 0.5, nothing=0.02)]) == []
    assert failures([row("none", 0.5, nothing=0.021)]) == [
        "FAIL  set, none: answerable questions get something: 2.1 get nothing"
    ]


@pytest.mark.parametrize(
    ("system", "own", "renamed", "count"),
    [("none", 175, 120, 0), ("minilm", 175, 95, 0), ("minilm", 174, 96, 2), ("a", 189, 121, 1)],
)
def test_questions_are_answered_by_their_own_conversation(
    system: str, own: int, renamed: int, count: int
) -> None:
    answered = {"own": own, "another's": 0, "with names": renamed, "they": 0}
    assert len(failures([row(system, 0.5, answered=answered)])) == count


def test_a_folder_keeps_the_answers_and_words_that_are_first() -> None:
    plain = Row("folder", "none", folder=FolderScores(19, 19, 16, words=9, words_first=9))
    worse = Row("folder", "a", folder=FolderScores(19, 18, 15, words=9, words_first=8))
    assert failures([plain, plain]) == []
    assert failures([plain, worse]) == [
        "FAIL  folder, a: answers in contexts are not fewer: 18, words 19 of 19",
        "FAIL  folder, a: first hits are not fewer: 15, words 16 of 19",
        "FAIL  folder, a: a word of one passage finds it first: 8 of 9",
    ]


# --- parts ---------------------------------------------------------------------------------------


def test_the_peer_finds_words_speakers_and_runs_of_letters() -> None:
    documents = [Document("a", "The red kayaks."), Document("b", "Tea.", role="Ana")]
    ranked: Callable[[str, str], list[str]] = lambda tokenizer, text: sqlite_peer.Peer(  # noqa: E731
        documents, tokenizer
    ).ranked(text, 10)
    assert ranked("porter", 'a "kayak"?') == ["a"]
    assert ranked("unicode61", "kayak") == []
    assert ranked("unicode61", "ana's tea") == ["b"]
    assert ranked("trigram", "xkayx") == ["a"]
    assert ranked("trigram", "?!") == []


def test_a_word_of_one_passage_has_no_other_inflection() -> None:
    """Function words, short words and parts of codes are no such words."""
    passages = {1: "The kayak waits there, for v2x and tea.", 2: "Two kayaks. Wait, Porto!"}
    assert sorted(words_of_one(passages)) == [("porto", 2)]


def test_questions_are_asked_of_another_conversation_with_its_names() -> None:
    def corpus(name: str, first: str, second: str) -> Corpus:
        documents = (Document("a", "Hi.", role=first), Document("b", "Ho.", role=second))
        text = f"Did {first} meet {second}'s {first}s?"
        return Corpus(name, documents, (Question(name, text, {"a": 1.0}),))

    judged = JudgedSet("talks", (corpus("x", "Ana", "Kofi"), corpus("y", "Mina", "Tom")))
    assert sorted(marks.asked_of(judged, 1)) == [
        ("another's", "Did Ana meet Kofi's Anas?"),
        ("own", "Did Mina meet Tom's Minas?"),
        ("they", "Did they meet they's Anas?"),
        ("with names", "Did Mina meet Tom's Anas?"),
    ]


class Prefixed(Concepts):
    """A model with a prefix for questions, which counts its calls."""

    calls = 0

    def embed_question(self, text: str) -> Any:
        self.calls += 1
        return self.embed([f"question {text}"])[0]


def test_questions_are_cached_apart(tmp_path: Path) -> None:
    """A model without `embed_question` gets no such member by its cache."""
    model = Prefixed()
    for _ in range(2):
        cache = CachedEmbedder(model, tmp_path)
        assert cache.embed_question("kayak").tolist() == model.embed(["question kayak"])[0].tolist()
        assert cache.embed(["kayak"])[0].tolist() == model.embed(["kayak"])[0].tolist()
        cache.close()
    assert model.calls == 1
    assert not hasattr(CachedEmbedder(Concepts(), tmp_path), "embed_question")


# --- the command ---------------------------------------------------------------------------------

TALK: Final[dict[str, Any]] = {
    "sample_id": "talk",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "The kayak is red."},
            {"speaker": "Kofi", "dia_id": "D1:2", "text": "Mine is blue."},
        ],
    },
    "qa": [{"question": "Which thing of Ana is red?", "evidence": ["D1:1"], "category": 4}],
}
PARAGRAPH: Final = {
    "context": "Der Fluss ist lang.",
    "qas": [{"id": "q", "question": "Was ist lang?", "answers": [{"text": "Fluss"}]}],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of small development sets."""
    folder = tmp_path / "data"
    (folder / "mixed-folder" / "logs").mkdir(parents=True)
    (folder / "xquad").mkdir()

    def write(name: str, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")

    write("locomo-dev.json", [TALK])
    write("xquad/xquad.vi.json", {"data": [{"paragraphs": [PARAGRAPH]}]})
    write("mixed-folder/house.md", "# House\n\nThe boiler is serviced by Harding.\n")
    write("mixed-folder/logs/a.log", "2024-05-01 ERROR quota exceeded\n")
    asked = {"Who services the boiler?": "Harding", "Which error?": "quota", "Which sea?": None}
    questions = [{"question": question, "answer": answer} for question, answer in asked.items()]
    write("mixed-folder-questions.json", questions)
    return folder


def arguments(data: Path, *more: str) -> list[str]:
    cache = ["--cache", str(data.parent / "cache")]
    return ["all", "--data", str(data), "--embedders", "none", *cache, *more]


def test_a_folder_of_sets_is_one_table(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each set that is there has rows beside FTS5, and each missing set a notice."""
    sets = ["--sets", "locomo,beam,xquad-vi,folder,folder-log"]
    code = main(arguments(data, *sets, "--contexts"))
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    systems = [line.split()[:3] for line in lines if line.startswith(("locomo  ", "xquad-vi "))]
    assert len(systems) == 8
    assert ["locomo", "fts5", "porter"] in systems
    assert f"beam is left out: {data / 'beam-dev.jsonl'} does not exist" in lines
    assert "100.0/100.0/100.0" in printed
    assert "in 500 100.0, in 1,000 100.0, in 2,000 100.0" in printed
    assert "answer in 1,500 100.0" in printed
    assert any(line.startswith("folder, none: of 1 answers 1 in 400 tokens") for line in lines)
    assert any(line.startswith("folder-log, none: of 2 answers") for line in lines)
    # One conversation has too few questions for the marks.
    assert code == 1
    assert "FAIL  locomo, none: questions of this conversation are answered: " in printed


def test_a_run_is_saved_and_compared(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second run takes the scores of FTS5 from the cache."""
    saved = str(data.parent / "saved")
    options = arguments(data, "--sets", "xquad-vi,locomo", "--quick")
    assert main([*options, "--save", saved]) == 0
    capsys.readouterr()
    assert main([*options, "--against", saved, "--profile", "words"]) == 0
    printed = capsys.readouterr().out
    assert "locomo, none: change R@10 +0.0 [+0.0, +0.0], nDCG@10 +0.0 [+0.0, +0.0]" in printed
    assert printed.splitlines()[-2].startswith("guard: 0 of ")


def test_the_table_is_one_json_object(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(data, "--sets", "locomo,folder", "--quick", "--json")) == 0
    content = json.loads(capsys.readouterr().out)
    systems = ["fts5 porter", "fts5 unicode61", "fts5 trigram", "none", "none"]
    assert [row["system"] for row in content["rows"]] == systems
    assert content["rows"][-1]["folder"]["in_context"] == 1
    assert all(line["passes"] for line in content["guard"])
    assert content.keys() >= {"machine", "cerata", "sqlite", "seconds", "notices"}


def test_faults_of_the_folder_are_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path / "none", "--sets", "locomo")) == NotFound.exit_code
    assert "has none of the chosen sets" in capsys.readouterr().err
    (data / "xquad" / "xquad.vi.json").write_text("[]")
    assert main(arguments(data, "--sets", "xquad-vi")) == InvalidInput.exit_code
    (data / "mixed-folder-questions.json").write_text("[1]")
    assert main(arguments(data, "--sets", "folder")) == InvalidInput.exit_code
    shutil.rmtree(data / "mixed-folder")
    with pytest.raises(SystemExit):
        main(arguments(data, "--sets", "sea"))
