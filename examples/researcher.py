"""An agent that goes on after a kill, and runs again without its tools: a decorated function.

    python examples/researcher.py --kill-after 2    # the process dies in the middle of the run
    python examples/researcher.py                   # goes on: no source is read twice
    PYTHONPATH=examples cerata agents runs week-1 researcher:research --again -f research.cera

The sources here are a dictionary: replace `read` by a request, and `summarise` by your model.
"""

import argparse
import os

import cerata

SOURCES = {"wax": "Wax keeps for years.", "honey": "Honey keeps for ever.", "comb": "Comb breaks."}
KILL_AFTER = [0]
"""Calls that are left until the process dies; 0 for no kill."""


def read(source: str) -> str:
    """Return the text of a source, in place of a request."""
    print(f"reading {source}")
    text = SOURCES[source]
    if KILL_AFTER[0]:
        KILL_AFTER[0] -= 1
        if not KILL_AFTER[0]:
            os._exit(9)
    return text


def summarise(texts: list[str]) -> str:
    """Return the first word of each text, in place of a model."""
    print("summarising")
    return " ".join(text.split()[0] for text in texts)


@cerata.agent("researcher")
def research(run: cerata.Run, sources: list[str]) -> str:
    """Read each source, and summarise all."""
    texts = [run.call("read", read, source=source).value for source in sources]
    model = run.tool(kind="model")(summarise)
    return f"{run.now():%Y}: {model(texts).value}"


def main() -> None:
    """Run the agent once, or go on with the run that a kill left open."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kill-after", type=int, default=0, metavar="CALLS")
    KILL_AFTER[0] = parser.parse_args().kill_after
    with cerata.open("research.cera") as store:
        print(research(store, id="week-1", sources=list(SOURCES)))
        print(cerata.Agent(store, "researcher").rerun("week-1", research))


if __name__ == "__main__":
    main()
