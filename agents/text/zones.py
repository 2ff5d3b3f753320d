"""Time zones: the check of a name, of a caller or of a recording."""

from contextlib import suppress
from zoneinfo import ZoneInfo

from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.limits import NAME_SIZE_MAX


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
