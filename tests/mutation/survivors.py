"""The mutants that no test notices, each with the reason why that is right.

``survivors.toml`` beside this file holds them: tables of ``mutant`` and ``reason``.
"""

import tomllib
from pathlib import Path

FILE = Path(__file__).with_name("survivors.toml")


def explained() -> dict[str, str]:
    """Return the reasons by mutant."""
    rows = tomllib.loads(FILE.read_text("utf-8")).get("survivor", [])
    return {row["mutant"]: row["reason"] for row in rows}
