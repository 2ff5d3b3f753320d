"""The pack of experiments: the options of ``time explain`` that ask recalls again.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Addition, Option, Pack

PACK: Final = Pack(
    name="experiments",
    additions=(
        Addition(
            "time explain",
            "cerata.packs.experiments.verbs:run_again",
            (
                Option(
                    "--again",
                    "ask the recall again as it was recorded; without SEQ all recalls, with "
                    "--compare",
                ),
                Option(
                    "--with FILE",
                    "settings in TOML for the recorded recalls; the first of two replaces the "
                    "recorded",
                    dest="settings",
                    repeats=True,
                ),
                Option("--compare", "print how the contexts of recalls differ"),
            ),
            ("41 --again", "--again --with policy.toml --compare"),
        ),
    ),
    renamed={
        "rerun recall": "time explain --again",
        "rerun --compare": "time explain --again --compare",
    },
)
