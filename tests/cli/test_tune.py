"""tune writes a whole new profile or nothing, and ``--profile`` refuses other files."""

import io
import json
import sys
from pathlib import Path

import pytest

import cerata
from cerata import agents

from .conftest import Run


@pytest.fixture
def judged(tmp_path: Path) -> list[str]:
    """Put talks in which questions have more of the words; return judgements of the answers."""
    lines: list[str] = []
    with cerata.open(tmp_path / "talks.cera") as store:
        for number in range(30):
            text = f"Which lamp {number}, the lamp {number}?"
            store.put_frame(text, role="ana", options=cerata.PutOptions(track=f"{number}"))
            answer = store.put_frame(
                f"Lamp {number} is here.", role="ben", options=cerata.PutOptions(track=f"{number}")
            )
            query = {"text": f"lamp {number}", "relevant": [f"#{answer.id}"]}
            lines.append(json.dumps({"query": {**query, "group": f"{number % 3}"}}) + "\n")
    (tmp_path / "judged.jsonl").write_text("".join(lines))
    return lines


@pytest.mark.usefixtures("judged")
def test_a_written_profile_is_that_of_the_answer(run: Run, tmp_path: Path) -> None:
    """The file alone carries the weights to another command."""
    code, out, _ = run(
        "admin", "tune", "judged.jsonl", "--profile", "words", "--to", "m.json", "--json"
    )
    answer = json.loads(out)
    assert (code, answer["improves"], answer["to"]) == (0, True, "m.json")
    profile = cerata.Profile.from_dict(json.loads((tmp_path / "m.json").read_text()))
    assert profile.to_dict() == answer["profile"]
    code, out, _ = run("search", "lamp 3", "--profile", "m.json", "--explain", "--json")
    explanation = json.loads(out)["hits"][0]["explanation"]
    assert explanation["profile"] == {"name": "tuned", "version": 1}


@pytest.mark.usefixtures("judged")
def test_without_a_gain_nothing_is_written(run: Run, tmp_path: Path) -> None:
    """The learned profile cannot gain upon itself; the answer is no."""
    run("admin", "tune", "judged.jsonl", "--profile", "words", "--to", "m.json")
    command = ("admin", "tune", "judged.jsonl", "--profile", "m.json", "--to", "n.json")
    code, out, _ = run(*command)
    assert code == 1
    assert "nothing was written" in out
    assert not (tmp_path / "n.json").exists()
    code, _, _ = run(*command, "--anyway")
    assert code == 0
    assert (tmp_path / "n.json").exists()
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.usefixtures("judged")
def test_a_file_is_never_replaced_and_is_refused_before_the_work(run: Run, tmp_path: Path) -> None:
    """The judgements are not even read."""
    (tmp_path / "m.json").write_text("mine")
    code, _, err = run("admin", "tune", "nowhere.jsonl", "--to", "m.json")
    assert code == 5
    assert "exists already" in err
    assert (tmp_path / "m.json").read_text() == "mine"


def test_a_folder_that_is_missing_is_named_before_the_work(run: Run, tmp_path: Path) -> None:
    """The error came after all queries, named a temporary file, and was no JSON."""
    with cerata.open(tmp_path / "talks.cera") as store:
        store.put_frame("a lamp")
    code, out, err = run("admin", "tune", "nowhere.jsonl", "--to", "no/m.json", "--json")
    answer = json.loads(out)
    assert (code, err, answer["where"]) == (cerata.NotFound.exit_code, "", "no/m.json")
    assert answer["what"] == "The folder of the new file does not exist"


def test_recorded_recalls_teach(run: Run, tmp_path: Path) -> None:
    """A use by `access --record` counts for the recall before."""
    with cerata.open(tmp_path / "talks.cera") as store:
        for number in range(9):
            frame = store.put_frame(f"lamp {number}")
            store.recall(f"lamp {number}", record=True)
            agents.record_access(store, frame)
        frame = store.put_frame("Which mill, the mill?")
    assert run("admin", "tune", "--recalls")[0] == 2
    assert run("recall", "which mill?", "--record")[0] == 0
    assert run("list", "--by", "access", f"{frame.id}", "--record")[0] == 0
    code, out, _ = run("admin", "tune", "--recalls", "--json")
    assert (code, json.loads(out)["questions"]) == (1, 10)


def test_judgements_come_from_standard_input(
    run: Run, judged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line's number counts there, too."""
    data = io.BytesIO("".join([*judged, "{}"]).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    code, _, err = run("admin", "tune", "-")
    assert code == 2
    assert "line 31" in err


BAD_FILES = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("[]", "must be an object"),
    ("\ud800", "not JSON"),
    ('{"name": "a"}', "has no version"),
    ('{"name": "a", "version": 1, "weights": {"txt": 1}}', "no lane 'txt'"),
    ('{"name": "a", "version": 1, "weights": {"text": Infinity}}', "must be 0 to"),
    ("[" * 100_000, "not JSON"),
    (" " * (1 << 20 | 1), "too large"),
]


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(("text", "fault"), BAD_FILES)
@pytest.mark.parametrize("verb", ["search", "recall", "admin tune"])
def test_a_file_that_is_no_profile_is_refused(
    run: Run, tmp_path: Path, verb: str, text: str, fault: str
) -> None:
    """The message names the file."""
    (tmp_path / "p.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    code, _, err = run(*verb.split(), "judged.jsonl", "--profile", "p.json")
    assert code == 2
    assert fault in err
    assert "p.json" in err


@pytest.mark.usefixtures("judged")
def test_a_file_with_the_name_of_a_profile_needs_a_path(run: Run, tmp_path: Path) -> None:
    """A file in the folder never changes the meaning of a name."""
    (tmp_path / "words").write_text('{"name": "a", "version": 1, "weights": {"facts": 1}}')
    code, out, _ = run("search", "lamp", "--profile", "words", "--json")
    assert code == 0
    assert json.loads(out)["hits"]
    code, out, _ = run("search", "lamp", "--profile", "./words", "--json")
    assert code == 0
    assert not json.loads(out)["hits"]
