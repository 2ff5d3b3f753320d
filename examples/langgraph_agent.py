# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""A LangGraph agent that is killed within a run, and goes on when it starts again.

``python examples/langgraph_agent.py --kill-after 2`` ends its own process by SIGKILL when two nodes
have finished. ``python examples/langgraph_agent.py`` then runs the remaining nodes only. It needs
the extra langgraph, and the package langgraph.
"""

import argparse
import os
import signal
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

import cerata
from cerata.integrations.langgraph import CerataSaver

NODES = ("search", "read", "summarize", "report")


class State(TypedDict):
    """The steps that have finished."""

    done: list[str]


def compiled(saver: CerataSaver, kill_after: int | None) -> Any:
    """Return a graph of the nodes in a row.

    Args:
        saver: Keeps the checkpoints.
        kill_after: Kill the process before the node after so many.
    """
    graph: Any = StateGraph(State)

    def node(name: str) -> Any:
        def run(state: State) -> State:
            if len(state["done"]) == kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
            print(f"runs {name}", flush=True)
            return {"done": [*state["done"], name]}

        return run

    for name in NODES:
        graph.add_node(name, node(name))
    for first, second in zip((START, *NODES), (*NODES, END), strict=True):
        graph.add_edge(first, second)
    return graph.compile(checkpointer=saver)


def main() -> None:
    """Run the graph, from its last checkpoint if there is one."""
    parser = argparse.ArgumentParser(description="A graph that can be killed.")
    parser.add_argument("--file", default="graph.cera")
    parser.add_argument("--kill-after", type=int)
    options = parser.parse_args()
    config: Any = {"configurable": {"thread_id": "report"}}
    with cerata.open(options.file) as store:
        saver = CerataSaver(store)
        graph = compiled(saver, options.kill_after)
        is_new = saver.get_tuple(config) is None
        # Without input a graph goes on from its last checkpoint.
        state = graph.invoke({"done": []} if is_new else None, config, durability="sync")
        print(f"finished: {', '.join(state['done'])}; event {saver.basis(config)}")


if __name__ == "__main__":
    main()
