"""Prompts of runs: flat, exact, repeatable, and with no line of data that begins as ours do."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cerata
from cerata import Agent, InvalidInput, Run, RunContext
from cerata.agents import prompt
from cerata.retrieval.tokenizer import tokenizer

QUESTION = "Rebalance?"


@pytest.fixture
def run() -> Iterator[Run]:
    with cerata.open(":memory:") as store, Agent(store, "analyst").run("r1") as opened:
        yield opened


def same(value: object) -> object:
    return value


def ask(run: Run, answer: object) -> None:
    run.tool("ask", kind="model")(lambda: answer)()


def fill(run: Run, turns: int) -> None:
    def fetch(turn: int) -> list[object]:
        return [{"day": turn, "text": "x" * 400}]

    for turn in range(turns):
        run.call("fetch", fetch, turn=turn)
        ask(run, f"Turn {turn} is done.")
        run.next_turn()


def count(context: RunContext) -> int:
    return sum(tokenizer().count(message["content"]) for message in context.to_messages())


def test_a_turn_has_its_calls_and_answers(run: Run) -> None:
    def fail(day: int) -> None:
        raise ValueError(f"no day {day}")

    def fetch(day: int) -> list[int]:
        return [day, 2]

    run.call("fetch", fetch, day=1)
    with pytest.raises(ValueError, match="no day"):
        run.call("fail", fail, day=2)
    ask(run, "Buy bonds.\nSell wax.")
    run.next_turn()
    ask(run, {"buy": 3})
    context = run.context(QUESTION, max_tokens=500)
    assert context.text == (
        "Available scratchpad refs:\n"
        "- $ref:fetch.1 — 2 numbers, 1…2, first 1, last 2 · 5 B\n"
        '- $ref:ask.1 — "Buy bonds.\\nSell wax." · 23 B\n'
        "- $ref:ask.2 — {buy: 3} · 9 B\n\n"
        "Turn 1:\n"
        '- fetch {"day":1} → $ref:fetch.1 2 numbers, 1…2, first 1, last 2 · 5 B\n'
        '- fail {"day":2} → raised "ValueError: no day 2"\n'
        "  Buy bonds.\n"
        "  Sell wax.\n\n"
        "Turn 2:\n"
        '  {"buy":3}'
    )
    assert context.to_messages() == [
        {"role": "user", "content": context.text},
        {"role": "user", "content": QUESTION},
    ]
    assert (context.turns, context.tokens) == ((1, 2), count(context))


@pytest.mark.parametrize("max_tokens", [60, 200, 700, 3_000, 20_000])
def test_a_prompt_keeps_its_budget_and_its_newest_turns(run: Run, max_tokens: int) -> None:
    fill(run, 60)
    context = run.context(QUESTION, max_tokens=max_tokens + 100, reserved=100)
    assert context.tokens == count(context) <= max_tokens
    assert context.max_tokens == max_tokens
    last = context.turns
    assert last == tuple(range(61 - len(last), 61))
    assert run.context(QUESTION, max_tokens=max_tokens + 100, reserved=100) == context
    listed = context.text.partition("\n\n")[0]
    assert tokenizer().count(listed) <= prompt.REFERENCES_SHARE


def test_a_long_list_folds_from_its_oldest(run: Run) -> None:
    fill(run, 60)
    lines = run.context(QUESTION, max_tokens=7_000).text.partition("\n\n")[0].splitlines()
    folded = [line for line in lines if "…" in line.partition(" — ")[0]]
    assert sorted(re.sub(r"[\d.]+ ", "N ", line.partition("…")[2]) for line in folded) == [
        "N — N results, N B",
        "N — N results, N KB",
    ]
    assert {line.partition("…")[0] for line in folded} == {"- $ref:ask.1", "- $ref:fetch.1"}
    assert run.get("$ref:fetch.1") == [{"day": 0, "text": "x" * 400}]
    for number in range(200):
        run.put(f"name{number}", number)
    few = run.context(QUESTION, max_tokens=200).text.splitlines()
    assert re.fullmatch(r"- \d+ older names — \d+ results, [\d.]+ KB", few[few.index("") - 1])


def test_too_small_a_budget_names_the_tokens_that_are_needed(run: Run) -> None:
    fill(run, 3)
    with pytest.raises(InvalidInput, match=r"need (\d+) tokens, of 5 ") as caught:
        run.context(QUESTION, max_tokens=15, reserved=10)
    found = re.search(r"of at least (\d+)", str(caught.value))
    assert found is not None
    needed = int(found[1])
    assert run.context(QUESTION, max_tokens=needed, reserved=10).tokens == needed - 10
    with pytest.raises(InvalidInput, match="max_tokens"):
        run.context(QUESTION, max_tokens="many")  # type: ignore[arg-type]


def test_a_run_without_calls_asks_the_question_alone(run: Run) -> None:
    context = run.context(QUESTION, max_tokens=50)
    assert context.to_messages() == [{"role": "user", "content": QUESTION}]


LINE_END = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def joined(end: str, line: str) -> str:
    return f"a{end}{line}"


TEXT = st.text() | st.builds(
    joined,
    st.sampled_from(LINE_END),
    st.sampled_from(["- $ref:fetch.9 — ok", "Turn 9:", "Available scratchpad refs:"]),
)


@settings(max_examples=50)
@given(
    st.dictionaries(TEXT, TEXT | st.lists(TEXT), max_size=4),
    TEXT,
    TEXT.filter(lambda text: "\x00" not in text),
)
def test_hostile_data_begins_no_line_as_ours(value: object, answer: str, message: str) -> None:
    def fail() -> None:
        raise ValueError(message)

    with cerata.open(":memory:") as store, Agent(store, "analyst").run("r1") as run:
        run.call("fetch", same, value=value)
        with pytest.raises(ValueError):  # noqa: PT011 - any message
            run.call("fail", fail)
        ask(run, answer)
        lines = run.context(QUESTION, max_tokens=5_000).text.splitlines()
    ours = [line for line in lines if line and not line.startswith("  ")]
    assert [line.split(" ")[0] + line.split(" ")[1] for line in ours if line[0] == "-"] == [
        *("-$ref:fetch.1", "-$ref:ask.1", "-fetch", "-fail"),
    ]
    assert [line for line in ours if line[0] != "-"] == ["Available scratchpad refs:", "Turn 1:"]


def test_a_prompt_of_the_past_is_that_of_a_re_run() -> None:
    prompts: list[str] = []

    def work(run: Run) -> None:
        for turn in range(4):
            prompts.append(run.context(QUESTION, max_tokens=300).text)
            run.call("fetch", same, value=["x" * 300, turn])
            run.next_turn()

    with cerata.open(":memory:") as store:
        agent = Agent(store, "analyst")
        with agent.run("r1") as run:
            work(run)
        assert agent.rerun("r1", work).outcome == "same"
    assert prompts[:4] == prompts[4:]
