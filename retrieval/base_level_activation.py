"""Strength: how likely a frame is to be needed, by its age and its uses.

Owns one formula, from which the tiers of a context and the boost of importance follow. With T the
days since a frame was created, n the number of its uses, and t the days since the last use,

    strength = 1/√T + 1/√t + 2 (n − 1) / (√T + √t)          the last two if n > 0

It is the sum of x^(−1/2) over the creation and each use, x days ago: the need for a memory falls
with a power of the time since the last need, and each need adds to the strength (J. Anderson and L.
Schooler, *Reflections of the Environment in Memory*, Psychological Science 2, 1991); ½ is the decay
of ACT-R. The times of the uses before the last are not stored, so they are spread evenly from T to
t, which gives the last summand (A. Petrov, *Computationally Efficient Approximation of the
Base-Level Learning Equation in ACT-R*, ICCM 2006). Days count from 1: anything younger is as fresh
as a day.

Only reported uses count, never the showing of a frame: else a frame that is shown more would be
shown more because of that.
"""

import math
from dataclasses import dataclass
from typing import Final

_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Use:
    """A frame's age, the number of its uses, and the time since the last; in days before a view."""

    age: float
    count: int = 0
    since: float = 0.0

    @property
    def of_uses(self) -> float:
        """The summands of the strength for uses; 0 without uses."""
        if not self.count:
            return 0.0
        since = math.sqrt(max(1.0, self.since))
        # A frame's created time may follow its last use: clamp.
        age = max(math.sqrt(max(1.0, self.age)), since)
        return 1.0 / since + 2.0 * (self.count - 1) / (age + since)

    def boost(self, importance: float) -> float:
        """Return the factor of a score: 1 + importance · u / (1 + u), with u = ``of_uses``.

        The factor is 1 without uses, and 1 + importance / 2 after one use today.

        >>> Use(age=100.0, count=1).boost(0.2), Use(age=100.0).boost(0.2)
        (1.1, 1.0)
        """
        return 1.0 + importance * self.of_uses / (1.0 + self.of_uses)

    @property
    def effective_age(self) -> float:
        """The age in days of an unused frame of the same strength: strength^(−2).

        >>> Use(age=100.0).effective_age
        100.0
        >>> round(Use(age=100.0, count=3, since=4.0).effective_age, 1)
        1.1
        """
        age = max(1.0, self.age)
        # As strength^(−2), but exact without uses.
        more = 1.0 + math.sqrt(age) * self.of_uses
        return age / (more * more)


def days_between(then_us: int, now_us: int) -> float:
    """Return the days from one time to another, both in microseconds; 0 if the first is later."""
    return max(0, now_us - then_us) / _DAY_US
