"""The parsers of assert, correct and retract."""

from argparse import ArgumentParser

from .choices import FACT_SOURCES, OBJECT_KINDS
from .verb_parser import Adding, add_verb, identifier


def add_verbs(adding: Adding) -> None:
    """Add assert, correct and retract."""
    asserting = add_verb(
        adding,
        "assert",
        "assert that a fact is true",
        "assertions.run_assert",
        writes=True,
        examples=(
            "assert alice 'lives in' paris --as entity --valid-from 2024-01-01",
            "assert staging 'database port' 5433 --as number --evidence '#3'",
        ),
    )
    asserting.add_argument("subject", metavar="SUBJECT", help="an entity's name")
    asserting.add_argument("predicate", metavar="PREDICATE", help="the property or relation")
    asserting.add_argument("object", metavar="OBJECT", help="the value")
    _add_values(asserting)
    asserting.add_argument(
        "--source", choices=FACT_SOURCES, default="observed", help="where it is from (observed)"
    )
    asserting.add_argument(
        "--assumption", action="append", default=[], help="holds only under it; repeat for several"
    )
    asserting.add_argument(
        "--because", type=identifier, metavar="FACT", help="the fact that led to this fact"
    )

    correct = add_verb(
        adding,
        "correct",
        "retract a fact, and assert the right one",
        "assertions.run_correct",
        reasons=True,
        examples=("correct 12 --object rome --as entity", "correct 12 --valid-to 2025-06-01"),
    )
    correct.add_argument("fact", type=identifier, metavar="FACT", help="id of the wrong fact")
    correct.add_argument("--object", metavar="VALUE", help="the right value")
    _add_values(correct)

    retract = add_verb(
        adding,
        "retract",
        "retract facts; earlier views keep them",
        "assertions.run_retract",
        reasons=True,
        examples=("retract 12", "retract 12 13"),
    )
    retract.add_argument("facts", nargs="+", type=identifier, metavar="FACT", help="ids of facts")


def _add_values(verb: ArgumentParser) -> None:
    verb.add_argument(
        "--as", dest="kind", choices=OBJECT_KINDS, default=None, help="kind of the value (string)"
    )
    verb.add_argument("--valid-from", metavar="TIME", help="true from then on, or 'open'")
    verb.add_argument("--valid-to", metavar="TIME", help="true until then, or 'open'")
    verb.add_argument("--confidence", type=float, metavar="P", help="probability, from 0 to 1")
    verb.add_argument(
        "--evidence",
        action="append",
        default=[],
        type=identifier,
        metavar="ID",
        help="a frame in which it was read; repeat for several",
    )
