"""Excerpts: lines as the text has them, rows below the names of their columns."""

import pytest

from cerata.cli.search import excerpt


@pytest.mark.parametrize(
    ("text", "at", "lines"),
    [
        ("def f():\n    a = 1\n    if a:\n        b = 2\n\n    return a\n", "a = 1", 3),
        ("- one\n- two\n- three\n- four\n", "two", 3),
    ],
)
def test_code_and_lists_keep_their_lines(text: str, at: str, lines: int) -> None:
    """Spaces in place of line ends made soup of them."""
    shown = excerpt(text, (text.index(at), len(text)), [], lines=lines).plain
    assert len(shown.splitlines()) == lines
    assert {line.strip() for line in shown.splitlines()} <= {
        *(line.strip() for line in text.splitlines()),
        "b = 2 …",
    }
    assert "    b = 2" in shown or "- two\n- three\n- four" in shown


def test_a_row_comes_below_the_names_of_the_columns() -> None:
    rows = "".join(f"| service{n} | {5400 + n} |\n" for n in range(9))
    text = f"Ports:\n\n| service | port |\n|---|---|\n{rows}"
    at = text.index("| service5")
    assert excerpt(text, (at, at + 5), [], lines=3).plain == (
        "| service | port |\n| service5 | 5405 |\n| service6 | 5406 | …"
    )


def test_rows_of_a_file_are_lines_below_the_names_of_the_columns() -> None:
    """A long line of names and a row that begins with two words were wrapped as prose."""
    names = "full name,plan,signed on,monthly price in euros,account manager"
    text = f"{names}\nAda Berg,pro,2026-01-01,850,Bo\nCy Duarte,free,2026-01-02,0,Bo\n"
    assert excerpt(text, (text.index("Ada"), len(text)), [], lines=2).plain == (
        f"{names}\nAda Berg,pro,2026-01-01,850,Bo …"
    )


def test_a_wrapped_paragraph_is_one_line_and_short_lines_are_not() -> None:
    wrapped = "The harbour bridge opens in May, and Anna sells the tickets\nat the old pier.\n"
    assert excerpt(wrapped, (0, 0), [], lines=3).plain == wrapped.strip().replace("\n", " ")
    assert excerpt("milk and eggs\nbread\n", (0, 0), [], lines=3).plain == "milk and eggs\nbread"
    code = "import a_module_with_a_name_that_is_rather_long_for_a_name\nimport sys\n"
    assert excerpt(code, (0, 0), [], lines=3).plain == code.strip()


def test_a_long_line_is_shown_around_the_match() -> None:
    text = "word " * 300 + "needle" + " word" * 300
    at = text.index("needle")
    shown = excerpt(text, (at, at + 6), [(at, at + 6)], lines=3)
    assert shown.plain.startswith("…word")
    assert shown.plain.endswith(" …")
    (span,) = (span for span in shown.spans if span.style == "bold green")
    assert shown.plain[span.start : span.end] == "needle"


def test_the_end_of_a_text_is_shown_with_the_lines_before() -> None:
    text = "one\n\ntwo\nthree\r\nfour"
    assert excerpt(text, (len(text) - 1, len(text)), [], lines=3).plain == "two\nthree\nfour"
    assert excerpt("", (0, 0), [], lines=3).plain == ""
    assert excerpt("\n \n", (0, 0), [], lines=3).plain == ""
