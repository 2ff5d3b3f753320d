"""The check of commit messages, and the commits that it reads in clones of each kind."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import commits
from tools.commits import Commit, faults

Git = Callable[..., None]

IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}


@pytest.mark.parametrize(
    "subject",
    [
        "engine: refuse writes after a failed sync",
        "docs, tests: name the lane",
        "Read a table row by row",
        "cli/output: print dates in words",
    ],
)
def test_a_good_message_has_no_fault(subject: str) -> None:
    assert list(faults(Commit("1a2b3c", subject, "Bytes were lost."))) == []


@pytest.mark.parametrize(
    ("subject", "body", "fault"),
    [
        ("engine: refused writes", "Why.", "'refused' is no imperative verb"),
        ("docs: the guard's figures on the last ranking", "Why.", "'the' is no imperative verb"),
        ("engine: types", "Why.", "'types' is no imperative verb"),
        ("wip", "Why.", "'wip' is no imperative verb"),
        ("engine:refuse writes", "Why.", "'engine:refuse' is no imperative verb"),
        ("engine: ", "Why.", 'not "area: verb ..."'),
        ("engine: refuse writes.", "Why.", "ends with a period"),
        ("engine: refuse " + "x" * 60, "Why.", "has 75 characters"),
        ("engine: refuse writes", " \n", "the body is missing"),
    ],
)
def test_a_bad_message_names_its_fault(subject: str, body: str, fault: str) -> None:
    """The rule, seen failing."""
    messages = list(faults(Commit("1a2b3c", subject, body)))
    assert len(messages) == 1
    assert fault in messages[0]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Start a repository in the current folder, without the machine's own settings."""
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}

    def run(*arguments: str) -> None:
        subprocess.run(["git", *arguments], env=environment, check=True, capture_output=True)

    run("init", "--initial-branch=main")
    return run


def write(git: Git, name: str, *messages: str) -> None:
    """Commit a new file under a message of these paragraphs."""
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    git("add", name)
    git("commit", *(part for message in messages for part in ("-m", message)))


def test_the_change_is_what_the_main_branch_of_the_origin_lacks(
    git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    """Older messages do not fail a change."""
    write(git, "a", "stuff")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    write(git, "b", "Add b", "It was missing.")
    assert commits.main() == 0
    assert capsys.readouterr().out == "commits: 1 checked\n"
    write(git, "c", "more stuff")
    assert commits.main() == 1
    output = capsys.readouterr().out
    assert "'more' is no imperative verb" in output
    assert "the body is missing" in output


@pytest.mark.parametrize("at_origin", [True, False])
def test_elsewhere_the_change_begins_with_the_check(
    git: Git, capsys: pytest.CaptureFixture[str], at_origin: bool
) -> None:
    """A clone of the main branch has no other sign of where the rule begins."""
    write(git, "a", "stuff")
    write(git, commits.THIS_FILE, "whatever adds the check")
    write(git, "b", "Add b", "It was missing.")
    if at_origin:
        git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert commits.main() == 0
    assert capsys.readouterr().out == "commits: 1 checked\n"


def test_without_history_nothing_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive of the tree has no repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert commits.main() == 0
    assert capsys.readouterr().out == "commits: none to check\n"
