"""Names of agents, activities and calls: the characters that they may have."""

import re
from contextlib import suppress
from typing import Final
from zoneinfo import ZoneInfo

from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.limits import NAME_SIZE_MAX

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


# --- Time zones: the check of a name, of a caller or of a recording -------------------------------


def check_timezone(name: object) -> str:
    """Return the IANA name of a time zone. Raises `InvalidInput`."""
    # A zone is a file: the system refuses names that are too long, or are no names of files.
    if isinstance(name, str) and len(name) <= NAME_SIZE_MAX:
        with suppress(LookupError, ValueError, OSError):
            return ZoneInfo(name).key
    raise InvalidInput(
        f"timezone is {value_text(name):.60}, which is no time zone",
        remedy="Pass an IANA name such as 'Europe/Rome'; the package tzdata has them all.",
    )
