"""An agent function of the tests in a module of its own, so that a recording can name it."""

import cerata


def double(number: int) -> int:
    return 2 * number


@cerata.agent("analyst")
def analyse(run: cerata.Run, start: int) -> int:
    return run.call("double", double, number=start).value  # type: ignore[return-value]


def undecorated(run: cerata.Run, start: int) -> int:
    return start
