"""Tables in a context: an excerpt is whole rows below their header."""

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cerata
from cerata.retrieval.context.blocks import ContextItem
from cerata.retrieval.context.entries import Entry
from cerata.retrieval.context.extracts import Marks, best_span
from cerata.retrieval.context.packing import ContextOptions, pack
from cerata.retrieval.context.policies import ContextPolicy
from cerata.retrieval.tables import find_tables, rows_of

HEADER = "| service | port | owner |\n|---|---:|---|\n"
ROWS = [f"| service{n} | {5400 + n} | team {n % 7} |\n" for n in range(80)]
CELLS = [f'service{n},"a, b"\n' for n in range(9)]
SERVICES = f"# Services\n\nAll of them.\n\n{HEADER}{''.join(ROWS)}\nEnd of the list.\n"
PORTS = (
    "# Ports\n\nSome prose of the queue.\n\n| name | port | owner |\n|---|---|---|\n"
    "| database | 5433 | anna |\n| cache | 6379 | ben |\n| queue | 5672 | cara |\n"
)


def matching(pattern: str) -> Callable[[str], Marks]:
    return lambda text: [match.span() for match in re.finditer(pattern, text)]


def item_of(
    text: str, pattern: str, max_tokens: int, *, policy: ContextPolicy | None = None
) -> ContextItem:
    options = ContextOptions(max_tokens, policy=policy or ContextPolicy("mine", 1))
    entry = Entry(1, "#1", text, tier="full" if policy is None else "line")
    return pack([(1, lambda: entry)], options, matching(pattern)).items[0]


def test_a_row_of_a_long_table_is_shown_whole_with_the_header() -> None:
    """The excerpt once began within one row and ended within another, without column names."""
    with cerata.open(":memory:") as store:
        receipt = store.remember(SERVICES)
        assert store.frame(receipt).text == SERVICES
        context = store.recall("which port has service63", max_tokens=120)
        assert HEADER in context.text
        assert ROWS[63] in context.text
        lines = [line for line in context.text.splitlines() if line.startswith("| service")]
        assert {f"{line}\n" for line in lines} <= {*ROWS, HEADER.partition("\n")[0] + "\n"}
        assert "…" in context.text
        older = store.recall("which port has service63", max_tokens=120, policy="whole 1")
        assert older.text.endswith("…")


@pytest.mark.parametrize("policy", ["whole", "tiered"])
def test_a_small_budget_shows_the_right_row(policy: str) -> None:
    with cerata.open(":memory:") as store:
        store.remember(PORTS, uri="md/table.md", title="table.md")
        for max_tokens in (25, 40, 60):
            text = store.recall("queue owner", max_tokens=max_tokens, policy=policy).text
            assert "| queue | 5672 | cara |" in text
            assert ("| name | port | owner |" in text) == (max_tokens == 60)


def test_the_best_span_of_a_table_is_a_row() -> None:
    """The words of the header count for each row."""
    marks = matching("port|queue|owner")(PORTS)
    start, end = best_span(PORTS, marks, find_tables(PORTS))
    assert PORTS[start:end] == "| queue | 5672 | cara |"
    assert best_span(PORTS, marks) != (start, end)


def test_an_excerpt_of_a_delimited_table_is_whole_rows_below_the_names() -> None:
    """A context of 80 or 120 tokens cut the row that matched."""
    header = "customer_id,name,plan,monthly_eur\n"
    rows = [f'C-{10_000 + n},"Nadia\nof {n}",team,{n}\n' for n in range(40)]
    text = header + "".join(rows)
    for max_tokens in range(50, 200, 7):
        shown = item_of(text, "C-10023", max_tokens).text + "\n"
        assert shown.startswith(f"{header}…\n")
        assert rows[23] in shown
        left = shown.removeprefix(header)
        for row in rows:
            left = left.replace(row, "")
        assert left.replace("…\n", "") == ""
    assert item_of(text, "C-10023", 30).text == f"… {rows[23].strip()} …"
    policy = ContextPolicy("short", 1, line_tokens=60)
    assert item_of(text, "C-10023", 900, policy=policy).text == f"{header}…\n{rows[23]}…"


def test_rows_apart_are_shown_with_a_mark_between() -> None:
    item = item_of(SERVICES, r"service12\b|service40\b", 70)
    assert item.text.startswith(f"…\n{HEADER}| … |\n")
    assert ROWS[12] in item.text
    assert ROWS[40] in item.text
    assert item.clipped


def test_without_a_match_the_first_rows_are_shown() -> None:
    text = HEADER + "".join(ROWS)
    assert item_of(text, "absent", 60).text.startswith(HEADER + ROWS[0])


def test_a_gist_and_a_line_have_rows_below_their_header() -> None:
    policy = ContextPolicy("short", 1, gist_tokens=90, line_tokens=60)
    line = item_of(SERVICES, r"service40\b", 900, policy=policy).text
    assert line == f"…\n{HEADER}| … |\n{ROWS[40]}| … |\n\n…"
    entry = Entry(1, "#1", SERVICES, tier="gist")
    options = ContextOptions(900, policy=policy)
    gist = pack([(1, lambda: entry)], options, matching(r"service40\b|End")).items[0].text
    assert ROWS[40] in gist
    assert gist.count(HEADER) == 1


def test_neighbouring_parts_of_a_table_join_with_one_header() -> None:
    with cerata.open(":memory:") as store:
        text = SERVICES.replace("".join(ROWS[50:]), "")
        store.remember(text)
        question = "which port has service43"
        context = store.recall(
            question, max_tokens=5_000, floor=False, layout=cerata.Layout(entry_tokens=5_000)
        )
        assert [len(item.joined) for item in context.items] == [1]
        assert context.items[0].text == text.strip()


def test_the_mark_of_a_cut_is_in_no_line_of_a_table() -> None:
    """The whole table fitted and the words after it did not: the last row was "… team 2 |…"."""
    table = f"{HEADER}{''.join(ROWS[:3])}"
    text = f"Before it.\n{table}\nAfter it are words of a text.\n"
    lines = {line.rstrip("\n") for line in (*HEADER.splitlines(), *ROWS[:3], "| … |")}
    sizes: set[int] = set()
    for max_tokens in range(45, 90):
        shown = item_of(text, "service[012]", max_tokens).text
        assert {line for line in shown.splitlines() if "|" in line} <= lines
        sizes.add(len(shown))
    assert len(sizes) > 5


@example(
    text=f"{HEADER}{'Words of a text. ' * 20}\n{ROWS[0]}", max_tokens=38, number=0, tier="gist"
)
@given(
    text=st.lists(
        st.sampled_from(
            [
                *(HEADER, *ROWS[:9], "Words of a text. " * 20 + "\n", "\n", "x | y\n"),
                *("id,port\n", *CELLS),
            ]
        ),
        min_size=1,
        max_size=30,
    ).map("".join),
    max_tokens=st.integers(8, 400),
    number=st.integers(0, 9),
    tier=st.sampled_from(["full", "gist", "line"]),
)
def test_no_excerpt_has_part_of_a_row_below_a_header(
    text: str, max_tokens: int, number: int, tier: str
) -> None:
    options = ContextOptions(max_tokens, policy=ContextPolicy("mine", 1))
    entry = Entry(1, "#1", f"x\n{text}", tier=tier)  # type: ignore[arg-type]
    packed = pack([(1, lambda: entry)], options, matching(f"service{number}\\b|port|Words"))
    assert packed.tokens <= max_tokens
    shown = packed.items[0].text
    whole = {*ROWS, *CELLS, "id,port\n", "x | y\n", "| … |\n", *HEADER.splitlines(keepends=True)}
    for table in find_tables(shown):
        rows = {shown[start:end].removesuffix("\n") + "\n" for start, end in rows_of(shown, table)}
        assert rows <= whole
