"""docs/command-line.md has the tables that are made from the verbs."""

from cerata.cli.verbs import renamed_verbs
from tools.command_line_page import PAGE, section, tables

from .conftest import verbs


def test_the_page_is_current() -> None:
    """``python -m tools.command_line_page`` writes the tables anew."""
    assert section(PAGE.read_text(encoding="utf-8")) == tables()


def test_the_page_has_every_verb_and_every_old_name() -> None:
    """Guards the test above against finding nothing."""
    text = tables()
    assert [words for words in verbs() if f"`{words}" not in text] == []
    assert [old for old in renamed_verbs() if f"| `{old}` |" not in text] == []
    assert "| `verify` | `file verify` |" in text


def test_pages_of_verbs_exist() -> None:
    """The links are checked with those of every page; here a verb may not name an empty page."""
    pages = {one.verb.page.partition("#")[0] for one in verbs().values() if one.verb}
    assert [page for page in pages if page and not (PAGE.parent / page).is_file()] == []
