"""The pack of crash tests: the verb that crashes a program in every way.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Arg, Option, Pack, Verb

CASES: Final = "crash-cases"

BUDGET_S: Final = 60.0
"""Seconds of a run that names neither a time nor a number of stories."""

_VERBS: Final = "cerata.fault_injection.command.verbs"

PACK: Final = Pack(
    name="crash-tests",
    docs=("fault-injection.md",),
    verbs=(
        Verb(
            "crash-test",
            "admin",
            "crash a program in every way, and check the recovered file",
            f"{_VERBS}:run_crash_test",
            (
                Arg(
                    "workload",
                    "a file with one Workload class (an agent's memory)",
                    "?",
                    metavar="WORKLOAD.py",
                    completer=f"{_VERBS}:python_files",
                ),
                Option(
                    "--budget SECONDS",
                    f"how long to test ({BUDGET_S:.0f})",
                    type=f"{_VERBS}:budget",
                ),
                Option(
                    "--stories COUNT",
                    "test so many stories, without a time limit: equal counts each time",
                    type=f"{_VERBS}:count",
                ),
                Option(
                    "--jobs N", "number of processes (one for each core)", type=f"{_VERBS}:count"
                ),
                Option("--seed N", "seed of all randomness (0)", type=int, default=0),
                Option("--cases FOLDER", f"folder for saved violations ({CASES})", default=CASES),
                Option(
                    "--replay CASE",
                    "open a saved crash again, and crash its story again",
                    completer=f"{_VERBS}:saved_cases",
                ),
            ),
            (
                "--budget 30",
                "shop.py --budget 60",
                "shop.py --stories 200 --json | jq .violations",
                "shop.py --replay crash-cases/sell.1.case",
            ),
            scoped=False,
            page="fault-injection.md",
        ),
    ),
)
