"""The pack of tuning: the verb that learns the weights of a profile.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import AT, EMBEDDER, Arg, Option, Pack, Verb

PACK: Final = Pack(
    name="tuning",
    docs=("tune.md",),
    functions={"tune": "cerata.tuning.tune"},
    verbs=(
        Verb(
            "tune",
            "admin",
            "learn the weights of a profile from judged queries",
            "cerata.packs.tuning.verbs:run_tune",
            (
                Arg(
                    "judgements",
                    "queries with their relevant frames as JSON Lines, or - for standard input",
                    "?",
                    metavar="JUDGEMENTS",
                ),
                Option("--recalls", "learn from recorded recalls whose frames were used later"),
                Option("--to FILE", "write the profile into a new file if it gains"),
                Option("--anyway", "with --to: write the profile without a gain, too"),
                Option("--name NAME", "the name of the learned profile (tuned)", default="tuned"),
                Option(
                    "--profile NAME", "the profile in use, by name or file (that of the memory)"
                ),
                EMBEDDER,
                AT,
            ),
            ("judged.jsonl", "judged.jsonl --to mine.json", "--recalls --to mine.json"),
            page="tune.md",
        ),
    ),
)
