"""Write `docs/renamed.md`: each old name of a call, and the new one.

``python -m tools.renamed`` writes the page; a test compares it with the table.
"""

from pathlib import Path
from typing import Final

from cerata.memory.values.renamed import KEYWORDS, RENAMED, functions

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "renamed.md"

_CALLS: Final = """# Names that moved

Calls of a store that are not for every day have a handle: `store.link(…)` is `store.graph.link(…)`.
A view has the same handles. An old name raises `AttributeError` with the new one.

| Old | New |
|---|---|
"""

_FUNCTIONS: Final = """
## Functions

Calls of agents, plots and tuning take the store or view first: `from cerata.agents import
messages`. `cerata.tune` is `cerata.tuning.tune`.

| Old | New |
|---|---|
"""

_KEYWORDS: Final = """
## Keywords

Rare keywords became fields of values: `put_frame(text, key="k")` is
`put_frame(text, options=cerata.PutOptions(key="k"))`. An old keyword raises `InvalidInput` with the
new place.

| Old | New |
|---|---|
"""


def page() -> str:
    """Return the text of the page."""
    calls = [f"| `store.{old}` | `store.{new}` |\n" for old, new in sorted(RENAMED.items())]
    keywords = [
        f"| `{call}({name}=…)` | `{new}` |\n"
        for call, names in KEYWORDS.items()
        for name, new in names.items()
    ]
    of_packs = [
        f"| `store.{old}(…)` | `{new}(store, …)` |\n" for old, new in sorted(functions().items())
    ]
    return "".join([_CALLS, *calls, _FUNCTIONS, *of_packs, _KEYWORDS, *keywords])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
