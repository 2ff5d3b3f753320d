"""Names of agents, activities and calls: the characters that they may have."""

import re
from typing import Final

from cerata.engine.errors import InvalidInput, value_text

VALUE_KIND: Final = "value"
"""The kind of the frames of a slot's values. On disk: never change it."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")


_LABEL_SIZE_MAX: Final = 100


def check_label(field: str, label: object) -> None:
    """Raise `InvalidInput` unless a name has 1 to 100 characters, printable and not blank."""
    is_label = (
        isinstance(label, str)
        and 0 < len(label) <= _LABEL_SIZE_MAX
        and label.isprintable()
        and label == label.strip()
    )
    if not is_label:
        raise InvalidInput(
            f"{field} is {value_text(label):.120}, expected 1 to {_LABEL_SIZE_MAX} "
            f"printable characters",
            remedy="Pass a name such as 'taxes'.",
        )


def check_name(field: str, name: object) -> None:
    """Raise `InvalidInput` unless a name has 1 to 100 letters, digits, "_", "." and "-"."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{field} is {value_text(name):.120}, expected 1 to 100 letters, digits, "
            f"'_', '.' and '-'",
            remedy="Pass a name such as 'market.fetch'.",
        )
