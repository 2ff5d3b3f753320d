"""Pictures at the command line: as the file's name says, and none where there is nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

import cerata
from cerata import Entity

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def memory(run: Run) -> None:
    """A memory with two facts, of which one is retracted."""
    with cerata.open("memory.cera") as store:
        store.assert_fact("ann", "likes", Entity("tea"))
        store.retract_fact(store.assert_fact("ann", "hates", Entity("milk")))


@pytest.mark.parametrize("verb", ["list", "graph"])
def test_a_picture_is_of_the_form_that_its_name_says(run: Run, memory: None, verb: str) -> None:
    """One that is there is drawn anew; no other file is left."""
    for name, start in (("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG"), ("a.svg", b"<?xml")):
        code, out, err = run("facts", verb, "ann", "--plot", name)
        assert (code, err) == (0, "")
        assert f"drawn: {name}" in out
        assert Path(name).read_bytes().startswith(start)
    assert sorted(path.name for path in Path().iterdir()) == ["a.PNG", "a.svg", "memory.cera"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("facts", "list", "ann", "--plot", "a.gif"), "must end in .svg or .png"),
        (("facts", "list", "--conflicts", "--plot", "a.svg"), "does not go with --plot"),
        (("facts", "graph", "ann", "--together", "--plot", "a.svg"), "--plot does not go with"),
        (("facts", "graph", "ann", "--to", "tea", "--plot", "a.svg"), "--plot does not go with"),
    ],
)
def test_what_has_no_picture_is_refused(
    run: Run, memory: None, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert [path.name for path in Path().iterdir()] == ["memory.cera"]


@pytest.mark.parametrize(
    "arguments", [("facts", "list", "bob"), ("facts", "graph", "ann", "--predicate", "is")]
)
def test_of_nothing_there_is_no_picture(run: Run, memory: None, arguments: tuple[str, ...]) -> None:
    assert run(*arguments, "--plot", "a.svg")[0] == 0
    assert not Path("a.svg").exists()


def test_a_folder_that_is_not_there_is_told(run: Run, memory: None) -> None:
    code, _, err = run("facts", "list", "ann", "--plot", "none/a.svg")
    assert code == cerata.StorageFailed.exit_code
    assert "No such file or directory" in err


def test_the_graph_marks_what_has_ended(run: Run) -> None:
    """As the facts do: a former home looked like the present one."""
    with cerata.open("m.cera") as store:
        bern, rome = Entity("bern"), Entity("rome")
        store.assert_fact("ann", "lived in", bern, valid_from="1990-01-01", valid_to="2001-01-01")
        store.assert_fact("ann", "lives in", rome, valid_from="2001-01-01")
    for arguments in (["--to", "bern"], ["--hops", "1"], []):
        lines = run("facts", "graph", "ann", *arguments)[1].splitlines()
        ended = [line for line in lines if line.endswith("  ended")]
        assert len(ended) == 1, lines
        assert "bern" in ended[0]
    assert "ended" not in run("facts", "graph", "ann", "--valid-at", "2000-06-01")[1]
