"""The parsers of runs and rerun."""

from .verb_parser import Adding, add_verb


def add_verbs(adding: Adding) -> None:
    """Add runs and rerun."""
    runs = add_verb(
        adding,
        "runs",
        "list the recorded runs of agents, or the calls of a run",
        "runs.run_runs",
        reads=True,
        examples=("runs", "runs r-17", "runs --agent analyst --at yesterday"),
    )
    runs.add_argument("named", nargs="?", metavar="RUN", help="id of a run, or #SEQ of its start")
    runs.add_argument("--agent", metavar="NAME", help="only the runs of this agent")

    rerun = add_verb(
        adding,
        "rerun",
        "execute a run again, with its calls answered from the recording",
        "runs.run_rerun",
        reads=True,
        examples=(
            "rerun run r-17 analyst:analyse",
            "rerun run r-17 analyst:analyse --live fork.cera",
            "rerun recall 41",
            "rerun --with policy.toml --compare",
        ),
    )
    rerun.add_argument(
        "what", nargs="?", choices=("run", "recall"), help="the recording: a run or a recall"
    )
    rerun.add_argument(
        "named", nargs="?", metavar="ID", help="id of a run or #SEQ of its start; seq of a recall"
    )
    rerun.add_argument(
        "function",
        nargs="?",
        metavar="MODULE:FUNCTION",
        help="the function to import, also from this folder; its code runs",
    )
    rerun.add_argument("--agent", metavar="NAME", help="the agent of the run")
    rerun.add_argument(
        "--live",
        metavar="FILE",
        help="go on at the first difference, in a new fork of the memory",
    )
    rerun.add_argument(
        "--with",
        dest="settings",
        action="append",
        default=[],
        metavar="FILE",
        help="settings in TOML for the recorded recalls; the first of two replaces the recorded",
    )
    rerun.add_argument(
        "--compare", action="store_true", help="print how the contexts of recalls differ"
    )
