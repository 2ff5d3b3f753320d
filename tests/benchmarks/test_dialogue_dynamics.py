"""The table of Dynamics on dialogues runs on a file in LoCoMo's form."""

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.dialogue_dynamics import print_dynamics

_TEXT = "I am scared of the deadline , when will you call ? thanks , maybe tomorrow"


def test_the_table_has_each_dialogue_and_the_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = Random(3)
    turns = [
        {
            "dia_id": f"D1:{number + 1}",
            "speaker": "Ann" if number % 2 else "Bob",
            "text": " ".join(drawn.choices(_TEXT.split(), k=drawn.randint(1, 30))),
        }
        for number in range(40)
    ]
    conversation = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    questions = [{"question": "Who?", "evidence": ["D1:1"], "category": 1}]
    sample = {"sample_id": "conv-1", "qa": questions, "conversation": conversation}
    path = tmp_path / "dialogues.json"
    path.write_text(json.dumps([sample]), encoding="utf-8")
    print_dynamics(path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("conv-1          10 exchanges: predictor ")
    assert lines[0].removeprefix("conv-1") == lines[1].replace("all   ", "", 1)
    assert lines[-1].startswith("hash of all errors ")
