"""The loaders of judged sets: each form from a tiny file, and each fault with its place."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval import code_functions, conversations, cranfield, jsonl, xquad
from benchmarks.retrieval.judged_set import Document, Question
from benchmarks.retrieval.synthetic import synthetic_set
from cerata import CerataError, InvalidInput, NotFound

SAMPLE: Mapping[str, Any] = {
    "sample_id": "talk",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Kofi",
        "session_2": [{"dia_id": "D2:1", "speaker": "Kofi", "text": "I sold the kayak."}],
        "session_2_date_time": "12:05 am on 1 June, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ana", "text": "Look!", "blip_caption": "a red kayak"},
            {"dia_id": "D1:2", "speaker": "Kofi", "text": "Nice."},
        ],
        "session_1_date_time": "1:56  pm on 8 May, 2023",
        "session_3_date_time": "1:56 pm on 9 June, 2023",
    },
    "qa": [
        {"question": "What did Kofi sell?", "category": 4, "evidence": ["D2:1"]},
        {"question": "Who has a kayak?", "category": 1, "evidence": ["D1:1; D:2:01", "D1:1"]},
        {"question": "Who sleeps?", "category": 5, "evidence": []},
    ],
}


def sample(**changes: Any) -> str:
    """Return a file of one sample, with changed members of the conversation or the sample."""
    talk = {name: value for name, value in changes.items() if name.startswith("session")}
    rest = {name: value for name, value in changes.items() if name not in talk}
    conversation = {**SAMPLE["conversation"], **talk}
    return json.dumps([{**SAMPLE, "conversation": conversation, **rest}])


def written(folder: Path, text: str) -> Path:
    path = folder / "set.json"
    path.write_text(text, encoding="utf-8")
    return path


def fault(load: Callable[[Path], object], path: Path) -> CerataError:
    """Return the error of a loader; its place begins with the file."""
    with pytest.raises(CerataError) as caught:
        load(path)
    assert (caught.value.where or "").startswith(str(path))
    assert caught.value.remedy
    return caught.value


def locomo(path: Path) -> object:
    return conversations.load(path, "locomo")


# --- conversations -------------------------------------------------------------------------------


def test_a_conversation_has_its_turns_in_the_order_of_sessions(tmp_path: Path) -> None:
    """Neighbours of a turn follow from the order, and a question's period from the time."""
    judged = conversations.load(written(tmp_path, sample()), "locomo")
    may = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    june = datetime(2023, 6, 1, 0, 5, tzinfo=UTC)
    [corpus] = judged.corpora
    photo = "Look! [shared a photo: a red kayak]"
    assert corpus.documents == (
        Document("D1:1", photo, role="Ana", time=may, parent="session_1"),
        Document("D1:2", "Nice.", role="Kofi", time=may, parent="session_1"),
        Document("D2:1", "I sold the kayak.", role="Kofi", time=june, parent="session_2"),
    )
    assert corpus.newest == june
    assert corpus.sessions == {"D1:1": "session_1", "D1:2": "session_1", "D2:1": "session_2"}


def test_evidence_may_list_turns_and_misspell_them(tmp_path: Path) -> None:
    """The published LoCoMo does both; a question without evidence has nothing to find."""
    judged = conversations.load(
        written(tmp_path, sample()), "locomo", categories=conversations.LOCOMO_CATEGORIES
    )
    assert judged.questions == (
        Question("talk/0", "What did Kofi sell?", {"D2:1": 1.0}, category="single-hop"),
        Question("talk/1", "Who has a kayak?", {"D1:1": 1.0, "D2:1": 1.0}, category="multi-hop"),
    )


@pytest.mark.parametrize("evidence", ["D7:1", "the last turn"])
def test_evidence_without_a_turn_is_refused_with_its_question(
    tmp_path: Path, evidence: str
) -> None:
    """A lost judgement would raise every recall in silence."""
    text = sample(qa=[{"question": "Who?", "category": 1, "evidence": ["D1:1", evidence]}])
    path = written(tmp_path, text)
    error = fault(locomo, path)
    assert error.where == f"{path}, sample 1, question 1"
    assert evidence in error.what
    judged = conversations.load(path, "locomo", tolerant=True)
    assert judged.questions[0].relevant == {"D1:1": 1.0}
    assert judged.notices == (
        f"{path}, sample 1, question 1: evidence {evidence} names no turn; left out",
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (sample(session_1_date_time="8 May"), ", sample 1, session_1"),
        (sample(session_1_date_time=None), ", sample 1, session_1"),
        (sample(session_1=[{"dia_id": "D1:1", "speaker": "Ana"}]), ", sample 1, session_1, turn 1"),
        (sample(session_1="Look!"), ", sample 1, session_1"),
        (
            sample(session_2=[{"dia_id": "D1:1", "speaker": "Ana", "text": "Again."}]),
            ", sample 1, session_2, turn 1",
        ),
        (
            sample(session_1=[{"dia_id": "D1:1", "speaker": "Ana", "text": " "}]),
            ", sample 1, session_1, turn 1",
        ),
        (sample(sample_id=7), ", sample 1"),
        (sample(conversation=[]), ", sample 1"),
        (sample(qa={}), ", sample 1"),
        (sample(qa=["Who?"]), ", sample 1, question 1"),
        (sample(qa=[]), ""),
        ("[]", ""),
        ("{}", ""),
        ("[1]", ", sample 1"),
        ("[", ", character 1"),
        (" \n", ""),
    ],
)
def test_a_fault_of_a_conversation_has_its_place(tmp_path: Path, text: str, place: str) -> None:
    """A file of megabytes is searched by its place."""
    path = written(tmp_path, text)
    assert fault(locomo, path).where == f"{path}{place}"


@pytest.mark.parametrize("load", [locomo, jsonl.load])
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, load: Callable[[Path], object]
) -> None:
    """A path with a slip is the most frequent fault."""
    assert isinstance(fault(load, tmp_path / "none.json"), NotFound)
    path = tmp_path / "latin.json"
    path.write_bytes(b"\xe9")
    error = fault(load, path)
    assert isinstance(error, InvalidInput)
    assert error.where == f"{path}, byte 0"


# --- Cranfield -----------------------------------------------------------------------------------

DOCUMENTS = (
    "<doc><docno> 1 </docno><title>a wing</title><text>a wing\nand its lift &amp; drag</text></doc>"
    "<doc><docno>2</docno><title></title><text></text></doc>"
)
QUERIES = "<top><num> 7</num><title>\nlift ?\n</title></top><top><title>drag</title></top>"
JUDGEMENTS = "1 0 1 1\n1 0 2 3\n2 0 1 0\n\n"


def collection(
    folder: Path,
    documents: str = DOCUMENTS,
    queries: str = QUERIES,
    judgements: str = JUDGEMENTS,
) -> Path:
    for name, text in (
        (cranfield.DOCUMENTS, documents),
        (cranfield.QUERIES, queries),
        (cranfield.JUDGEMENTS, judgements),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_cranfield_numbers_its_queries_in_the_order_of_the_file(tmp_path: Path) -> None:
    """The numbers inside the file are others; grade 0 is not relevant, and all more is alike."""
    judged = cranfield.load(collection(tmp_path))
    [corpus] = judged.corpora
    assert corpus.documents == (
        Document("1", "a wing and its lift & drag", title="a wing"),
        Document("2", ""),
    )
    assert corpus.questions == (Question("1", "lift ?", {"1": 1.0, "2": 1.0}),)


@pytest.mark.parametrize(
    ("judgements", "line"),
    [
        ("1 0 1 1\n1 0 9 1", 2),
        ("3 0 1 1", 1),
        ("1 0 1", 1),
        ("one 0 1 1", 1),
        ("1 0 1 good", 1),
        ("1 0 1 nan", 1),
        ("1 0 1 -1", 1),
    ],
)
def test_a_fault_of_a_judgement_has_its_line(tmp_path: Path, judgements: str, line: int) -> None:
    """A judgement of a missing document would lower every recall in silence."""
    path = collection(tmp_path, judgements=judgements)
    with pytest.raises(InvalidInput) as caught:
        cranfield.load(path)
    assert caught.value.where == f"{path / cranfield.JUDGEMENTS}, line {line}"


@pytest.mark.parametrize(
    ("changes", "file"),
    [
        ({"documents": ""}, cranfield.DOCUMENTS),
        ({"documents": "<doc><title>a</title></doc>"}, cranfield.DOCUMENTS),
        ({"documents": DOCUMENTS + DOCUMENTS}, cranfield.DOCUMENTS),
        ({"queries": " "}, cranfield.QUERIES),
        ({"judgements": "1 0 1 0"}, ""),
    ],
)
def test_an_empty_part_of_a_collection_is_refused(
    tmp_path: Path, changes: dict[str, str], file: str
) -> None:
    """A set without questions has no mean."""
    path = collection(tmp_path, **changes)
    with pytest.raises(InvalidInput) as caught:
        cranfield.load(path)
    assert (caught.value.where or "").startswith(str(path / file))


# --- any judged file -----------------------------------------------------------------------------

LINES = """\
{"query": {"id": "q1", "text": "Where does Ana live?", "relevant": {"t2": 2, "t1": 0}}}
{"document": {"id": "t1", "text": "I moved.", "role": "Ana", "time": "2024-05-01T10:00:00+02:00"}}

{"document": {"id": "t2", "text": "Porto.", "time": "2024-05-01", "parent": "s", "title": "T"}}
{"query": {"id": "q2", "text": "Who?", "relevant": ["t1"], "category": "people"}}
{"query": {"id": "q3", "text": "Why?", "relevant": {}}}
{"document": {"id": "t1", "text": "Hello.", "corpus": "b"}}
{"query": {"id": "q4", "text": "Who greets?", "relevant": ["t1"], "corpus": "b"}}
"""


def test_json_lines_have_documents_and_queries_in_any_order(tmp_path: Path) -> None:
    """A set of one's choice needs no code: a time without a zone is in UTC."""
    judged = jsonl.load(written(tmp_path, LINES))
    first, second = judged.corpora
    assert [document.id for document in first.documents] == ["t1", "t2"]
    assert first.documents[0].time == datetime(2024, 5, 1, 8, tzinfo=UTC)
    assert first.documents[1] == Document(
        "t2", "Porto.", title="T", time=datetime(2024, 5, 1, tzinfo=UTC), parent="s"
    )
    assert first.questions == (
        Question("q1", "Where does Ana live?", {"t2": 2.0}),
        Question("q2", "Who?", {"t1": 1.0}, category="people"),
    )
    assert (second.name, len(second.documents), len(second.questions)) == ("b", 1, 1)
    assert judged.notices == ("1 queries without a relevant document left out",)


T1 = '{"document": {"id": "t1", "text": "a"}}\n'
Q1 = '{"query": {"id": "q1", "text": "a?", "relevant": ["t1"]}}\n'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (T1 + Q1.replace('"t1"', '"t9"'), ", line 2"),
        (T1 + Q1.replace('["t1"]', '["t1"], "corpus": "b"'), ", line 2"),
        (T1 + T1 + Q1, ", line 2"),
        (T1 + Q1 + Q1, ", line 3"),
        (T1.replace('"a"', '""') + Q1, ", line 1"),
        (T1.replace('"a"', "7") + Q1, ", line 1"),
        (T1.replace('"a"', '"a", "time": "8 May"') + Q1, ", line 1"),
        (T1.replace('"a"', '"a", "speaker": "Ana"') + Q1, ", line 1"),
        (T1 + Q1.replace('"a?"', '" "'), ", line 2"),
        (T1 + Q1.replace('["t1"]', '{"t1": -1}'), ", line 2"),
        (T1 + Q1.replace('["t1"]', '{"t1": true}'), ", line 2"),
        (T1 + Q1.replace('["t1"]', '{"t1": NaN}'), ", line 2"),
        (T1 + Q1.replace('["t1"]', "7"), ", line 2"),
        (T1 + "[]", ", line 2"),
        (T1 + '{"document": {"id": "t2"}}', ", line 2"),
        (T1 + '{"turn": {"id": "t2"}}', ", line 2"),
        (T1 + "{", ", line 2, character 1"),
        (T1, ""),
        (Q1.replace('["t1"]', "[]"), ""),
        ("", ""),
    ],
)
def test_a_fault_of_a_line_has_its_number(tmp_path: Path, text: str, place: str) -> None:
    """Judgements are written by hand, and slips are found by their line."""
    path = written(tmp_path, text)
    error = fault(jsonl.load, path)
    assert isinstance(error, InvalidInput)
    assert error.where == f"{path}{place}"


# --- the generated set ---------------------------------------------------------------------------


def test_the_generated_set_follows_from_its_seed() -> None:
    """A guard in CI needs the same questions on every machine."""
    judged = synthetic_set()
    assert judged == synthetic_set()
    assert judged.digest != synthetic_set(7).digest
    assert len(judged.questions) == 60
    for corpus in judged.corpora:
        names = {document.id for document in corpus.documents}
        assert all(set(question.relevant) <= names for question in corpus.questions)


# --- XQuAD ---------------------------------------------------------------------------------------


def xquad_text(count: int) -> str:
    """Return a file of two paragraphs, the second with so many questions."""
    questions = [
        {"id": f"q{number}", "question": f"Which {number}?", "answers": [{"text": f"t{number}"}]}
        for number in range(count)
    ]
    paragraphs: list[Any] = [
        {"context": "Tea.", "qas": []},
        {"context": "Coffee.", "qas": questions},
    ]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_every_third_question_of_a_paragraph_is_asked(tmp_path: Path) -> None:
    """All of 1,190 questions would take thrice the time for the same answer."""
    path = written(tmp_path, xquad_text(4))
    judged = xquad.load(path)
    [corpus] = judged.corpora
    assert [document.text for document in corpus.documents] == ["Tea.", "Coffee."]
    asked = [(question.text, question.relevant) for question in corpus.questions]
    assert asked == [("Which 0?", {"p2": 1.0}), ("Which 3?", {"p2": 1.0})]
    assert xquad.answers(path)["q3"] == ("t3",)


@pytest.mark.parametrize("text", ["[]", '{"data": [1]}', '{"data": [{"paragraphs": [{}]}]}'])
def test_another_form_of_xquad_is_named(tmp_path: Path, text: str) -> None:
    assert "another form" in str(fault(xquad.load, written(tmp_path, text)))


# --- code ----------------------------------------------------------------------------------------


def test_functions_are_found_by_the_first_sentence_of_their_docstring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The docstring itself is no part of the document, or each question would be in it."""
    monkeypatch.setattr(code_functions, "PACKAGES", ("json",))
    monkeypatch.setattr(code_functions, "MODULES", ("bisect",))
    judged = code_functions.load()
    [corpus] = judged.corpora
    texts = {document.id: document.text for document in corpus.documents}
    assert any(text.startswith("def insort_right(") for text in texts.values())
    for question in corpus.questions:
        assert len(question.text.split()) in code_functions.WORDS
        assert not any(question.text in texts[name] for name in question.relevant)
    assert judged.digest == code_functions.load().digest
