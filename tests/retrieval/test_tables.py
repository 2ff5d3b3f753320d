"""Tables: found by Markdown's rule, cut between rows, and readable in every passage."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerata.retrieval.chunking import PASSAGE_TOKENS_MAX, split_passages
from cerata.retrieval.tables import Table, find_tables, rows_of
from cerata.retrieval.tokenizer import tokenizer

HEADER = "| service | port |\n|:---|---:|\n"
ROWS = [f"| service{n} | {5400 + n} |\n" for n in range(80)]
TWICE = "".join(ROWS * 2)


def found(text: str) -> list[str]:
    return [text[table.start : table.end] for table in find_tables(text)]


def test_a_table_is_a_header_dashes_and_rows_with_pipes() -> None:
    table = HEADER + "".join(ROWS[:3])
    assert found(f"# A\n\nText.\n{table}\nEnd | of text.\n") == [table]
    assert found(f"{table}\n{table}") == [table, table]
    assert found("a | b\n-|-\n1 | 2") == ["a | b\n-|-\n1 | 2"]
    assert found("  | a |\r\n  |---|\r\n  | 1 |\r\n\r\nx") == ["  | a |\r\n  |---|\r\n  | 1 |\r\n"]
    assert found("| a \\| b |\n|---|\n| 1 |\n") == ["| a \\| b |\n|---|\n| 1 |\n"]


def test_what_only_looks_like_a_table_is_none() -> None:
    """A rule under a heading, dashes of other cells, a table without rows."""
    for text in ("A\n---\nB | C\n", "| a | b |\n|---|\n| 1 |\n", HEADER, "|---|\n|---|", "|-", ""):
        assert found(text) == []
    assert found("x\n" + "|-" * 30_000 + "x\n") == []


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_lines_of_cells_below_a_line_of_names_are_a_table(mark: str) -> None:
    """Only the first passage of a CSV file had the names, and contexts cut its rows."""
    table = "id,full name,2019\r\n1,Ada,850\r\n2,Bo\r\n".replace(",", mark)
    assert found(f"Made today{mark} by hand\n{table}\nAnd, later{mark} text.\n") == [table]
    (only,) = find_tables(table)
    assert [table[start:end] for start, end in rows_of(table, only)] == table.splitlines(True)[1:]
    assert table[: only.body] == table.splitlines(True)[0]


def test_a_quoted_cell_may_have_delimiters_and_lines() -> None:
    text = '"name, all",note\n"Ada, of\nLyon","a ""b""\n"\n5" nail,x\n"a"b,"c\n'
    (table,) = find_tables(text)
    rows = [text[start:end] for start, end in rows_of(text, table)]
    assert rows == ['"Ada, of\nLyon","a ""b""\n"\n', '5" nail,x\n', '"a"b,"c\n']


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world\nand, others\n",
        "Hello,world.\nand,others.\n",
        "from a import b, c\nfrom d import e, f\n",
        "2026-09-19 17:14:00,123 INFO x\n2026-09-19 17:14:00,124 INFO y\n",
        "1,Ada\nBo,2\nCleo,3\n",
        "\tint\tx;\n\tint\ty;\n",
        "  return a,b\n  x = c,d\n",
        "name,plan\n",
        "name,plan\none\n",
    ],
)
def test_prose_code_logs_and_rows_without_names_are_no_table(text: str) -> None:
    """Their first line would be repeated in every passage."""
    assert found(text) == []


def test_every_passage_of_a_delimited_table_has_the_names_and_whole_rows() -> None:
    header = "id,name,plan\n"
    rows = [f'{n},"Ada\nof {n}",free\n' for n in range(200)]
    text = header + "".join(rows)
    passages = split_passages(text)
    assert len(passages) > 4
    assert "".join(text[one.start : one.end] for one in passages) == text
    for passage in passages:
        shown = passage.text_in(text)
        assert tokenizer().count(shown) <= PASSAGE_TOKENS_MAX
        (table,) = find_tables(shown)
        assert shown[: table.body] == header
        assert {shown[start:end] for start, end in rows_of(shown, table)} <= {*rows}


def test_a_line_of_dashes_among_the_rows_begins_no_second_table() -> None:
    text = "| a |\n|---|\n|---|\n| 1 |\n|---|\n| 2 |\n"
    assert find_tables(text) == [Table(0, 12, len(text))]


def test_every_passage_of_a_table_has_the_header_and_whole_rows() -> None:
    text = f"# Ports\n\nAll of them.\n\n{HEADER}{TWICE}\nAfter it.\n"
    passages = split_passages(text)
    assert len(passages) > 2
    assert [passage.start for passage in passages[1:]] == [one.end for one in passages[:-1]]
    for passage in passages:
        shown = passage.text_in(text)
        assert tokenizer().count(shown) <= PASSAGE_TOKENS_MAX
        (table,) = find_tables(shown)
        assert shown[table.start : table.body] == HEADER
        assert {shown[start:end] for start, end in rows_of(shown, table)} <= {*ROWS}
    assert passages[0].header == (0, 0)
    assert text[slice(*passages[1].header)] == HEADER


def test_text_after_a_table_does_not_begin_with_rows_without_header() -> None:
    """The overlap of a passage ends at the table."""
    prose = "".join(f"Sentence {n} has some words. " for n in range(200))
    text = f"{HEADER}{''.join(ROWS[:24])}\n{prose}"
    for passage in split_passages(text):
        shown = passage.text_in(text)
        assert "| service" not in shown or HEADER in shown


def test_a_header_that_would_fill_a_passage_is_not_repeated() -> None:
    names = " | ".join(f"a long name of column {n}" for n in range(60))
    text = f"| {names} |\n|{'---|' * 60}\n" + f"|{' x |' * 60}\n" * 20
    passages = split_passages(text)
    assert {passage.header for passage in passages} == {(0, 0)}
    assert "".join(text[one.start : one.end] for one in passages) == text


def test_a_row_longer_than_a_passage_is_cut() -> None:
    text = f"{HEADER}| x | {'word ' * 900}|\n| y | 2 |\n"
    passages = split_passages(text)
    assert "".join(text[one.start : one.end] for one in passages) == text
    assert passages[-1].text_in(text).startswith(HEADER)


@given(
    parts=st.lists(
        st.sampled_from(
            [
                *(HEADER, *ROWS[:4], "word " * 90, "\n", "# A\n", "x | y\n", "|---|\n"),
                *("a,b\n", '1,"x\ny"\n', '"', "2,3\n"),
            ]
        ),
        max_size=60,
    )
)
def test_spans_of_a_text_with_tables_are_the_text(parts: list[str]) -> None:
    """Whatever the header repeats, the document reads back exactly."""
    text = "".join(parts)
    end = 0
    joined = ""
    for passage in split_passages(text):
        joined += text[end : passage.end]
        end = passage.end
        assert passage.start <= end
        assert tokenizer().count(passage.text_in(text)) <= PASSAGE_TOKENS_MAX
    assert joined == text


@pytest.mark.parametrize(
    "text",
    [
        "|a|\n|-|\n|1|\n\n" * 20_000,
        "|-|\n" * 50_000,
        "|" * 200_000 + "\n" + "|-" * 100_000 + "\n|x|\n",
        "|---x\n" * 40_000,
        "a,b\n1,2\n\n" * 20_000,
        'a,b\n"' * 40_000,
        "a,b\n" + '"",' * 60_000,
        "a," * 100_000 + "a\n" + "1," * 100_000,
        "a,b\n\n" * 40_000 + '"' + "x" * 100_000,
    ],
    ids=[
        *("many tables", "many dashes", "wide header", "almost dashes", "many CSV"),
        *("open quotes", "empty quotes", "wide CSV", "no rows"),
    ],
)
def test_a_hostile_text_is_cut_in_time_proportional_to_its_length(text: str) -> None:
    """Each line is read a few times, and a header is counted only where a passage begins."""
    start = time.process_time()
    passages = split_passages(text)
    assert time.process_time() - start < 5
    end = 0
    for passage in passages:
        assert passage.start <= end
        end = passage.end
    assert end == len(text)
