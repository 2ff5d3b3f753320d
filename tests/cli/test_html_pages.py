"""Pages of HTML: stored text stays text, nothing is loaded, and the marks are balanced."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import cerata
from cerata.cli.files import audit_page, bisect_page, diff_page, safe

from .conftest import Run

EVIL = (
    "</li></style><script src=//evil.example/x>alert(1)</script>"
    "<img src=x onerror=y>\"'&\u202e\x1b[2J"
)
VOID = ("meta",)
ALLOWED = frozenset(
    """
    html head meta title style body main h1 h2 p strong section ol li ins del span div table
    caption thead tbody tr th td
    """.split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(
    ("lang", "charset", "http-equiv", "content", "name", "class", "scope"),
)


class Page(HTMLParser):
    """Collects the tags, attributes and text of a page, and checks that tags are closed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(page: str) -> Page:
    """Return a page that has only plain tags and loads nothing."""
    parsed = Page(page)
    assert set(parsed.tags) <= ALLOWED
    assert parsed.attributes <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "scope",
    }
    assert "default-src 'none'" in page
    # Words of stored text may look like an address; no tag or style has one.
    assert not re.search(r"<[^>]*(?:https?:|//|src=|href=|url\()", page)
    assert "url(" not in page
    assert "@import" not in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    return parsed


def test_hostile_text_stays_text() -> None:
    """In titles, texts, actors, reasons, facts and questions."""
    with cerata.open(":memory:", actor=EVIL) as store:
        note = store.put_frame(f"{EVIL} opens in April", title=EVIL)
        store.supersede(note, f"{EVIL} opens in May", reason=EVIL)
        store.assert_fact(EVIL, EVIL, EVIL)
        diff = store.history.since(1, query="opens")
        result = store.history.bisect(lambda view: len(view.facts()) == 0)
        pages = (
            checked(diff_page(diff)),
            checked(bisect_page(result, [("before", EVIL), ("after", EVIL)], diff)),
            checked(audit_page(store.history.audit())),
        )
        for page in pages:
            assert "<script src=//evil.example/x>" in page.text
        assert "U+202E" in safe(EVIL)


def test_a_diff_marks_its_words_and_lines() -> None:
    with cerata.open(":memory:") as store:
        note = store.put_frame("It opens in April.", title="Bridge")
        store.supersede(note, "It opens in May.")
        store.assert_fact("bridge", "opens in", "May")
        page = diff_page(store.diff(note))
        assert '<li class="old">- It opens in <del>April</del>.</li>' in page
        assert '<li class="new">+ It opens in <ins>May</ins>.</li>' in page
        parsed = checked(page)
        assert "replaced #1 → #2 · Bridge" in parsed.text
        assert "+ #4" in parsed.text
        assert "prefers-color-scheme: dark" in page


def test_a_table_has_no_column_narrower_than_its_words() -> None:
    """With "anywhere" a browser takes a letter for the least width of a cell: a, n, n, a."""
    with cerata.open(":memory:", actor="anna") as store:
        store.put_frame("The bridge opens in May. " * 8)
        style = audit_page(store.history.audit()).partition("<style>")[2].partition("</style>")[0]
    for rule in re.findall(r"([^{}]+)\{([^{}]*)\}", style):
        if re.search(r"\b(?:table|th|td|tr|caption)\b", rule[0]):
            assert not re.search(r"anywhere|break-all|table-layout", rule[1]), rule


def test_an_empty_store_has_pages_too() -> None:
    with cerata.open(":memory:") as store:
        assert "0 added, 0 removed" in checked(diff_page(store.diff(0))).text
        assert "Audit up to event 0" in checked(audit_page(store.history.audit())).text


@pytest.mark.parametrize(
    "verb", ["time diff 0", "log --who", "time bisect --query bridge --forbid May"]
)
def test_a_page_replaces_a_file_when_it_is_whole(
    verb: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is left in the folder; a folder of that name is refused."""
    monkeypatch.chdir(tmp_path)
    with cerata.open(tmp_path / "a.cera") as store:
        store.supersede(store.put_frame("The bridge opens in April."), "The bridge opens in May.")
    (tmp_path / "page.html").write_text("old")
    names = {path.name for path in tmp_path.iterdir()}
    code, out, err = run(*verb.split(), "--html", "page.html")
    assert (code, err) == (0, "")
    assert "page: page.html" in out
    checked((tmp_path / "page.html").read_text("utf-8"))
    assert {path.name for path in tmp_path.iterdir()} == names
    (tmp_path / "folder").mkdir()
    code, _, err = run(*verb.split(), "--html", "folder")
    assert code == 2
    assert "regular file" in err
