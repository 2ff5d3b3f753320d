"""Names of files: as short as tells them apart."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import cerata
from cerata.memory.ingest.discovery import short_names

URIS = st.lists(
    st.lists(st.sampled_from(["a", "b", "main.py", "x.md"]), min_size=1, max_size=4).map(
        lambda parts: "/" + "/".join(parts)
    ),
    max_size=12,
    unique=True,
)


@given(uris=URIS)
def test_no_two_files_share_a_name_and_each_name_ends_the_path(uris: list[str]) -> None:
    names = short_names(uris)
    assert list(names) == uris
    assert len(set(names.values())) == len(uris)
    for uri, name in names.items():
        assert uri == name or uri.endswith(f"/{name}")
        shorter = name.partition("/")[2]
        alike = [one for one in uris if shorter and f"/{one}".endswith(f"/{shorter}")]
        assert not shorter or len(alike) > 1 or name.endswith("/main.py")


def test_a_common_name_has_its_folder() -> None:
    """`__init__.py > escape` did not say of which package."""
    assert short_names(["/lib/html/__init__.py", "/lib/ast.py", "/README.md"]) == {
        "/lib/html/__init__.py": "html/__init__.py",
        "/lib/ast.py": "ast.py",
        "/README.md": "/README.md",
    }


def test_files_of_one_name_have_titles_that_tell_them_apart(tmp_path: Path) -> None:
    for folder in ("html", "json"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text(f"def {folder}_escape():\n    pass\n" * 99)
        (tmp_path / folder / "tool.py").write_text(f"{folder} = 1\n")
    with cerata.open(":memory:") as store:
        store.files.remember([tmp_path])
        titles = {frame.title for frame in store.frames()}
        assert titles == {
            "html/__init__.py", "json/__init__.py", "html/tool.py", "json/tool.py"
        }  # fmt: skip
        (hit, *_) = store.search("html_escape", k=1)
        assert hit.frame.title is not None
        assert hit.frame.title.startswith("html/__init__.py > html_escape")
        assert not store.remember(tmp_path / "json" / "tool.py").added
    with cerata.open(":memory:") as store:
        receipt = store.remember(tmp_path / "html" / "__init__.py")
        assert store.frame(receipt).title == "html/__init__.py"
        receipt = store.remember(tmp_path / "html" / "tool.py")
        assert store.frame(receipt).title == "tool.py"
