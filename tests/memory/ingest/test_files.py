"""Many files: which are taken, what became of each, and nothing written where that was asked."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import cerata
from cerata import InvalidInput, Store
from cerata.memory.ingest import document as ingest
from cerata.memory.ingest import folder as files
from cerata.memory.ingest.discovery import DEFAULT_EXCLUDED, find_files
from cerata.memory.ingest.folder import RememberedFile

from .test_formats import line_of, pdf

TREE = (
    "a.md",
    "b.py",
    "c.log",
    "noending",
    ".hidden.md",
    ".git/d.md",
    "node_modules/e.md",
    "pkg/__pycache__/f.py",
    "pkg/g.py",
    "pkg/tests/h.py",
    "pkg/deep/tests/i.txt",
    "pkg/j.min.js",
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as people have them, and the folder above to be in."""
    monkeypatch.chdir(tmp_path)
    for name in TREE:
        path = tmp_path / "top" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Text of {name}.\n")
    return tmp_path / "top"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, "a.md b.py pkg/deep/tests/i.txt pkg/g.py pkg/tests/h.py"),
        ({"exclude": ["tests"]}, "a.md b.py pkg/g.py"),
        ({"exclude": ["tests/"]}, "a.md b.py pkg/g.py"),
        ({"exclude": ["pkg/tests"]}, "a.md b.py pkg/deep/tests/i.txt pkg/g.py"),
        ({"exclude": ["top/pkg"]}, "a.md b.py"),
        ({"exclude": ["pkg/**/i.txt"]}, "a.md b.py pkg/g.py pkg/tests/h.py"),
        ({"include": ["*.{log,md}"]}, "a.md c.log"),
        ({"include": ["*.py"], "exclude": ["h.*"]}, "b.py pkg/g.py"),
        ({"include": ["noending"]}, "noending"),
        (
            {"default_excludes": False, "include": ["*.md"]},
            ".git/d.md .hidden.md a.md node_modules/e.md",
        ),
    ],
)
def test_patterns_say_which_files(tree: Path, options: dict[str, list[str]], found: str) -> None:
    """As the shell and .gitignore have taught everybody."""
    taken = find_files(["top"], **options).files  # type: ignore[arg-type]
    assert [Path(one).relative_to("top").as_posix() for one in taken] == found.split()


def test_what_is_left_out_is_counted(tree: Path) -> None:
    """A file that is passed by in silence is missed much later."""
    found = find_files(["top"])
    assert found.excluded == len({".hidden.md", ".git", "node_modules", "__pycache__", "j.min.js"})
    assert found.passed_over == {".log": 1, "no ending": 1}
    (tree / "pkg" / "__init__.py").touch()
    assert "top/pkg/__init__.py" in find_files(["top"]).files
    assert find_files(["top/pkg/__init__.py"]).files == ("top/pkg/__init__.py",)


def test_what_is_named_is_taken_once_whatever_it_is_called(tree: Path) -> None:
    """The rules are for what nobody named."""
    names = ["top/.hidden.md", "top/c.log", "top/node_modules", "top/c.log", "gone.md"]
    found = find_files([*names, Path("top/c.log")], exclude=["g*.md"])
    assert found.files == ("top/.hidden.md", "top/c.log", "top/node_modules/e.md")
    assert found.excluded == 1


def test_a_link_to_a_folder_is_not_followed(tree: Path) -> None:
    """One that leads upwards would never end."""
    (tree / "pkg" / "loop").symlink_to(tree)
    (tree / "linked.md").symlink_to(tree / "a.md")
    found = find_files(["top"])
    assert "top/linked.md" in found.files
    assert found.passed_over["links to folders"] == 1
    assert len(found.files) == 6


def test_a_file_named_twice_is_found_once(tree: Path) -> None:
    """A dry run counted it twice, and the run itself stored it once."""
    assert find_files(["top/a.md", "./top/a.md", "top//a.md"]).files == ("top/a.md",)
    assert len(find_files(["top/", "./top"]).files) == 5


def test_a_link_that_cannot_be_followed_stops_no_other_file(tree: Path) -> None:
    """A link to itself, or into a folder that others own, is one line of the summary."""
    (tree / "pkg" / "self.md").symlink_to("self.md")
    found = find_files(["top"])
    assert len(found.files) == 5
    ((path, why),) = found.unreadable
    assert path == "top/pkg/self.md"
    assert why.startswith("Cannot read: ")


def test_a_pattern_that_explodes_is_refused(tree: Path) -> None:
    """A typed error, before anything is looked at."""
    with pytest.raises(cerata.InvalidInput, match="exclude has an unusable pattern"):
        find_files(["top"], exclude=["{1..100000}"])
    with pytest.raises(cerata.InvalidInput, match="include must be a list, not a string"):
        find_files(["top"], include="*.md")


@pytest.mark.parametrize("name", [2**63, 3, 3.5, None, b"a.md"])
def test_a_name_that_is_no_path_is_refused(name: object) -> None:
    """A number is an open descriptor to the system, and a large one raised OverflowError."""
    with cerata.open(":memory:") as store, pytest.raises(InvalidInput, match="Each of paths"):
        store.files.remember([name])  # type: ignore[list-item]


def test_the_page_names_what_is_left_out(checkout: Path) -> None:
    """A default that nobody can look up is a trap."""
    page = (checkout / "docs" / "ingest.md").read_text(encoding="utf-8")
    assert [name for name in DEFAULT_EXCLUDED if f"`{name}`" not in page] == []


class TestRemembering:
    """What became of each file."""

    def test_a_summary_tells_of_every_file(self, tree: Path) -> None:
        """Added, replaced, unchanged, skipped and why."""
        seen: list[tuple[str, int, int]] = []

        def report(file: RememberedFile, at: int, total: int) -> None:
            seen.append((file.path, at, total))

        with cerata.open(":memory:") as store:
            first = store.files.remember(["top"], report=report)
            assert [file.outcome for file in first.files] == ["added"] * 5
            assert seen == [(file.path, at, 5) for at, file in enumerate(first.files, 1)]
            (tree / "b.py").write_text("x = 1\n")
            (tree / "pkg" / "g.py").write_bytes(b"\xff")
            again = store.files.remember(["top", "top/gone.md", "top/a.mx"])
            assert {file.path: file.outcome for file in again.files} == {
                "top/a.md": "unchanged",
                "top/b.py": "replaced",
                "top/pkg/deep/tests/i.txt": "unchanged",
                "top/pkg/g.py": "skipped",
                "top/pkg/tests/h.py": "unchanged",
                "top/gone.md": "skipped",
                "top/a.mx": "skipped",
            }
            remedy = "Convert the file to UTF-8, or store its bytes with put_frame(data)."
            [replaced] = again.of("replaced")
            old = first.of("added")[1]
            assert (old.path, replaced.replaced) == ("top/b.py", (old.id,))
            assert [file.why for file in again.of("skipped")] == [
                f"Not UTF-8 text: byte 0 is 0xff. {remedy}",
                "There is no such file. Check the path.",
                "There is no such file. Did you mean top/a.md?",
            ]
            assert again.head == store.head.seq
            assert json.loads(json.dumps(again.to_dict()))["replaced"] == 1

    def test_a_dry_run_says_the_same_and_writes_nothing(self, tree: Path) -> None:
        """Whoever asks first must be told the truth."""
        (tree / "long.md").write_text("# A\n" + "word " * 2_000)
        with cerata.open(":memory:") as store:
            store.files.remember(["top"], include=["*.py"])
            (tree / "b.py").write_text("x = 1\n")
            before = store.head.seq
            planned = store.files.remember(["top"], dry_run=True)
            assert store.head.seq == before
            done = store.files.remember(["top"])
            told = [[replace(file, id=None) for file in one.files] for one in (planned, done)]
            assert told[0] == told[1]
            assert planned.frames == done.frames > 6
            assert planned.dry_run
            assert store.files.remember(["top"], dry_run=True).frames == 0

    def test_files_are_not_remembered_inside_a_transaction(self, tree: Path) -> None:
        """Each is durable before the next: a batch of all could not be resumed."""
        refused = pytest.raises(cerata.InvalidInput, match="cannot join a transaction")
        with cerata.open(":memory:") as store, store.transaction(), refused:
            store.files.remember(["top"])


CONTENTS = {
    "page.html": b"<title>T</title><body><h1>Bridge</h1><p>It opens in May.</p></body>",
    "chat.json": b'[{"role": "user", "content": "when does it open?"}]',
    "session.jsonl": b'{"role": "user", "content": "in May"}\n' * 3,
    "paper.pdf": pdf(line_of("It opens in May")),
    "plain.md": b"# Plan\nWe ship.\n",
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """HTML, PDF and transcripts were parsed each time, since their text is not their bytes."""
    path = tmp_path / name
    path.write_bytes(CONTENTS[name])
    with cerata.open(":memory:") as store:
        first = store.remember(path)
        with monkeypatch.context() as broken:
            broken.setattr(ingest, "extract", None)
            broken.setattr(files, "extract", None)
            again = store.remember(path)
            assert (again.id, again.ids, again.added) == (first.id, first.ids, False)
            assert [one.outcome for one in store.files.remember([path]).files] == ["unchanged"]
            path.write_bytes(CONTENTS[name] + b"\n ")
            with pytest.raises(TypeError):
                store.remember(path)
        # Corrected by hand, the text is no longer that of the file: the file is read again.
        store.supersede(first, "It opens in June.")
        path.write_bytes(CONTENTS[name])
        replaced = store.remember(path)
        assert replaced.added
        assert len(replaced.replaced) == 1


def test_a_receipt_names_what_it_replaced() -> None:
    """Of every call that supersedes, at once, in a transaction, and asked again by its key."""
    with cerata.open(":memory:") as store:
        old = store.put_frame("one", uri="a")
        assert old.replaced == ()
        assert store.supersede(old, "two").replaced == (1,)
        assert store.remember("three", uri="a").replaced == (2,)
        with store.transaction(key="k") as tx:
            new = store.put_frame("four")
            assert store.supersede(new, "five").replaced == (-1,)
        assert tx.receipt.replaced == (tx.receipt.seqs[0],)
        with store.transaction(key="k") as again:
            store.supersede(store.put_frame("four"), "five")
        assert (again.receipt.added, again.receipt.replaced) == (False, tx.receipt.replaced)


def test_a_history_has_every_version_from_any_of_them() -> None:
    """What was it before, and what is it now: the question that people ask most."""
    with cerata.open(":memory:") as store:
        first = store.put_frame("one")
        other = store.put_frame("another")
        second = store.supersede(first, "two")
        store.supersede(other, second)
        third = store.supersede(second, "three")
        versions = [first.id, other.id, second.id, third.id]
        for number in versions:
            assert [frame.id for frame in store.history.of(number)] == versions
        assert [frame.id for frame in store.at(2).history.of(first)] == [first.id]
        store.delete(third)
        assert [frame.active for frame in store.history.of(first)] == [False] * 4
        with pytest.raises(cerata.NotFound):
            store.history.of(99)


def test_files_of_one_name_in_two_folders_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one memory for all projects, the second README took the first one's place."""
    with cerata.open(tmp_path / "all.cera") as store:
        for name in ("harbour", "bridge"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "README.md").write_text(f"# About the {name}\n")
            monkeypatch.chdir(tmp_path / name)
            store.remember(Path("README.md"))
        assert sorted(frame.text for frame in store.frames()) == [
            "# About the bridge\n",
            "# About the harbour\n",
        ]


def test_one_file_is_one_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its folder, from above, by its whole path: else each way would store it again."""
    (tmp_path / "notes").mkdir()
    file = tmp_path / "notes" / "a.md"
    file.write_text("The harbour bridge opens in May.")
    with cerata.open(tmp_path / "a.cera") as store:
        monkeypatch.chdir(tmp_path)
        first = store.remember(Path("notes/a.md"))
        monkeypatch.chdir(tmp_path / "notes")
        for path in (Path("a.md"), Path("../notes/./a.md"), file):
            assert store.remember(path).id == first.id
        (frame,) = store.frames()
        assert frame.uri == file.as_posix()
        assert store.files.source(frame).startswith("#1 · a.md · …/notes/a.md · ")


def test_a_link_out_of_the_folder_is_skipped_with_its_reason(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, store: Store
) -> None:
    """A folder from elsewhere must not bring in what its maker could only guess at."""
    outside = tmp_path_factory.mktemp("outside") / "secret.md"
    outside.write_text("secret")
    (tree / "out.md").symlink_to(outside)
    (tree / "up.md").symlink_to(Path("..") / tree.name / ".." / outside.parent.name / outside.name)
    (tree / "log.bin").symlink_to(outside)
    (tree / "inside.md").symlink_to("a.md")
    found = find_files([tree])
    assert f"{tree}/inside.md" in found.files
    assert not any("out.md" in name or "up.md" in name for name in found.files)
    said = dict(found.unreadable)
    assert said[f"{tree}/out.md"].startswith("It is a link to a file outside of the folder")
    assert f"{tree}/log.bin" not in said
    done = store.files.remember([tree])
    assert f"{tree}/out.md" in [file.path for file in done.of("skipped")]
    assert not store.search("secret")
    assert find_files([tree / "out.md"]).files == (f"{tree}/out.md",)


def test_links_inside_of_a_folder_that_is_a_link_are_read(tree: Path) -> None:
    (tree / "inside.md").symlink_to("a.md")
    (tree.parent / "linked-folder").symlink_to(tree)
    found = find_files([tree.parent / "linked-folder"])
    assert f"{tree.parent}/linked-folder/inside.md" in found.files
    assert not found.unreadable
