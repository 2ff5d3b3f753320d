"""An extension of griffe: examples in docstrings become blocks, as `doctest` reads them.

Without a block, ``>>>`` is a quote in Markdown, and a list of texts after it a link.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUntypedBaseClass=false

import re
from typing import Any, Final

import griffe

EXAMPLE: Final = re.compile(r"(?:^>>> .*\n?(?:.*\S.*\n?)*)", re.MULTILINE)


class Examples(griffe.Extension):  # type: ignore[misc]
    """Puts each example in a block."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Replace the text of the object's docstring."""
        if obj.docstring is not None:
            text = EXAMPLE.sub(_block, obj.docstring.value)
            obj.docstring.value = text


def _block(match: re.Match[str]) -> str:
    return f"```pycon\n{match[0].rstrip()}\n```\n"
