"""Facts at the command line: every word finds what it may stand for, and no option is ignored."""

import json
from collections.abc import Callable

import pytest

import cerata
from cerata import InvalidInput

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def memory(run: Run) -> None:
    """A memory with one fact for each object that is looked for."""
    del run  # It stands in an empty folder.
    with cerata.open("memory.cera") as store:
        words = ("nan", "Infinity", "1e400", "12345678901234567890123", "7", "true")
        store.graph.assert_many([("ann", "said", word) for word in words])
        store.graph.assert_many([("bob", "said", 7), ("bob", "said", 7.5), ("bob", "said", True)])


@pytest.mark.parametrize(
    ("word", "count"),
    [
        *(("nan", 1), ("Infinity", 1), ("1e400", 1), ("12345678901234567890123", 1)),
        *(("7", 2), ("7.5", 1), ("true", 2), ("", 0), ("-inf", 0)),
    ],
)
def test_an_object_is_whatever_its_word_may_mean(run: Run, word: str, count: int) -> None:
    """A string of the name, and a number where that is one which a fact can hold."""
    code, out, _ = run("facts", "list", f"--object={word}", "--json")
    assert (code, len(json.loads(out)["facts"])) == (0, count)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--conflicts", "--object", "x"), "--conflicts does not go with --object"),
        (("--conflicts", "--retracted"), "--conflicts does not go with --retracted"),
        (("--conflicts", "--valid-at", "now"), "--conflicts does not go with --valid-at"),
        (("--conflicts", "--matching", "x"), "--conflicts does not go with --matching"),
        (("--conflicts", "--evidence"), "--conflicts does not go with --evidence"),
        (("--conflicts", "--invalid"), "--conflicts does not go with --invalid"),
        (("--matching", "ann", "--retracted"), "--matching does not go with --retracted"),
        (("--matching", "ann", "--invalid"), "--matching does not go with --invalid"),
    ],
)
def test_an_option_that_would_be_passed_over_is_refused(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    code, out, err = run("facts", "list", *options)
    assert (code, out) == (InvalidInput.exit_code, "")
    assert said in err


def test_what_goes_together_is_answered(run: Run) -> None:
    for options in (
        ("ann", "--conflicts", "--predicate", "said"),
        ("--matching", "ann", "--evidence", "--valid-at", "now"),
        ("ann", "--object", "7", "--retracted", "--invalid", "--evidence"),
    ):
        assert run("facts", "list", *options)[0] == 0
