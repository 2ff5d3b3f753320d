"""The token file of MCP over HTTP: its mode, its form, and no token in an error."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import cerata
from cerata.cli.main import main
from cerata.integrations.mcp.http import TokenEntry, bearers_of, listening_socket, tokens_in

TOKEN = "s3cret" + 30 * "x"


def written(folder: Path, content: object, mode: int = 0o600) -> str:
    path = folder / "tokens.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return str(path)


def test_entries_are_read(tmp_path: Path) -> None:
    """A token reads and writes unless its entry excludes writing."""
    scope = {"tenant": "acme", "project": 7}
    path = written(tmp_path, [{"token": TOKEN, "scope": scope}])
    assert tokens_in(path) == [TokenEntry(TOKEN, {"tenant": "acme", "project": 7}, read_only=False)]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o700, 0o400])
def test_a_file_of_another_mode_is_refused(tmp_path: Path, mode: int) -> None:
    """Another user of the machine could read the tokens, or add one."""
    path = written(tmp_path, [{"token": TOKEN, "scope": {"tenant": "acme"}}], mode)
    with pytest.raises(cerata.InvalidInput, match=f"{mode:04o}") as caught:
        tokens_in(path)
    assert caught.value.where == path
    assert caught.value.remedy == f"Run: chmod 600 {path}"


FAULTS: list[tuple[Any, str]] = [
    ([], "no token"),
    ("", "not valid"),
    ("{", "not valid"),
    ({"token": TOKEN}, "not valid"),
    ([{"token": TOKEN}], "not valid"),
    ([{"token": TOKEN, "scope": {}}], "not valid"),
    ([{"token": TOKEN, "scope": {"tenant": ["a"]}}], "not valid"),
    ([{"token": TOKEN[:31], "scope": {"tenant": "a"}}], "not valid"),
    ([{"token": f"{TOKEN} x", "scope": {"tenant": "a"}}], "not valid"),
    ([{"token": f"{TOKEN}é", "scope": {"tenant": "a"}}], "not valid"),
    ([{"token": TOKEN, "scope": {"tenant": "a"}, "admin": True}], "not valid"),
    ([{"token": TOKEN, "scope": {"tenant": "a"}, "read_only": "no"}], "not valid"),
    ([{"token": TOKEN, "scope": {"tenant": name}} for name in "ab"], "twice"),
    ("[" + " " * (1 << 20) + "]", "1 MiB"),
]


@pytest.mark.parametrize(("content", "fault"), FAULTS)
def test_a_file_of_another_form_is_refused(tmp_path: Path, content: object, fault: str) -> None:
    """A server must not start with other rights than its file shows."""
    path = written(tmp_path, content)
    with pytest.raises(cerata.InvalidInput, match=fault) as caught:
        tokens_in(path)
    assert caught.value.where == path
    assert "s3cret" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """A pipe is refused too, and not waited for."""
    with pytest.raises(cerata.NotFound, match="no token file"):
        tokens_in(str(tmp_path / "none.json"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(cerata.InvalidInput, match="is no file"):
            tokens_in(str(path))


def test_a_scope_that_would_widen_is_refused() -> None:
    """The scope of the server stays in force for each token."""
    entries = [
        TokenEntry("a" * 32, {"user": "anna"}),
        TokenEntry("b" * 32, {"tenant": "other"}),
    ]
    with cerata.open(":memory:", scope={"tenant": "acme"}) as store:
        with pytest.raises(cerata.InvalidInput, match="entry 2") as caught:
            bearers_of(entries, store, "tokens.json", is_read_only=False, is_recording=False)
        assert caught.value.where == "tokens.json"
        (bearer,) = bearers_of(
            entries[:1], store, "tokens.json", is_read_only=True, is_recording=True
        )
        assert dict(bearer.service.store.scope or ()) == {"tenant": "acme", "user": "anna"}
        assert not bearer.service.is_recording


def test_a_port_in_use_is_refused() -> None:
    """The remedy is another port."""
    with listening_socket(0) as listener:
        port = listener.getsockname()[1]
        for refused in (port, 70_000):
            with pytest.raises(cerata.InvalidInput, match=f"Cannot listen on port {refused}"):
                listening_socket(refused)


@pytest.mark.parametrize(
    "words",
    [
        ["--http", "0"],
        ["--tokens", "tokens.json"],
        ["--print-config", "cursor", "--http", "0"],
        ["--record", "--read-only"],
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is opened or created, and standard output stays empty."""
    path = tmp_path / "brain.cera"
    assert main(["admin", "mcp", "-f", str(path), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: --")
    assert not path.exists()
