"""A few of the kills of `talk_kills`, and proof that the check sees each fault."""

from pathlib import Path

import pytest

import cerata
from cerata import Agent

from . import talk_kills


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("life")
    result = talk_kills.run(folder, 6, seed=3)
    assert result.faults == []
    assert (result.kills, result.resumed > 0) == (6, True)
    assert result.acknowledged > 6
    return folder


def test_a_lost_and_a_repeated_message_are_seen(life: Path) -> None:
    journal = life / "other"
    journal.write_text((life / "journal").read_text() + "s0 0.9999\n")
    acknowledged = (life / "journal").read_text().split()[-1]
    text = f"question {acknowledged}"
    with cerata.open(life / "memory.cera") as store:
        Agent(store, "wyatt").session("x").message("user", text, id="again")
    result = talk_kills.Result()
    talk_kills.check_all(life / "memory.cera", journal, result)
    assert sorted(result.faults) == sorted(
        [
            f"{acknowledged} is not there once",
            "0.9999 is not there once",
            f"{text!r} is there 2 times or without its half",
            f"'answer {acknowledged}' is there 1 times or without its half",
        ]
    )
