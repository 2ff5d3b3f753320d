"""The option --expires: a time, also in words."""

from datetime import datetime

from cerata.engine.environment import SystemClock
from cerata.projections.columnar.relative_times import interval_of
from cerata.projections.columnar.times import to_datetime

_NEVER = "never"


def expiry_of(text: str | None) -> datetime | None:
    """Return the time that --expires names, such as "in 2 hours"; a day's 00:00 UTC; None: "never".

    Raises:
        InvalidInput: the text is no time.
    """
    if text is None or text == _NEVER:
        return None
    return to_datetime(interval_of(text, to_datetime(SystemClock().now_us())).start)
