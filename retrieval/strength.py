"""Strength: how likely a frame is to be needed, by when it came and when it was used.

Owns one formula, from which a context's tiers and the boost of importance follow. With T the days
since a frame was created, n how often it was used, and t the days since it was last,

    strength = 1/√T + 1/√t + 2 (n − 1) / (√T + √t)          the last two where n > 0

It is the sum of x^(−1/2) over the creation and each use, x days ago: the need for a memory falls
with a power of the time since it was needed, and each time adds to it (J. Anderson and L. Schooler,
*Reflections of the Environment in Memory*, Psychological Science 2, 1991); ½ is the decay of ACT-R.
When the uses before the last were is not counted, so they are spread evenly from T to t, which
gives the last summand (A. Petrov, *Computationally Efficient Approximation of the Base-Level
Learning Equation in ACT-R*, ICCM 2006). Days count from 1: what is younger is as fresh as can be.

Used is what somebody said was used, never what was shown: what is shown more would else be shown
more for that.
"""

import math
from dataclasses import dataclass
from typing import Final

_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Use:
    """When a frame was created, how often it was used, and when last: in days before a view."""

    age: float
    count: int = 0
    since: float = 0.0

    @property
    def of_uses(self) -> float:
        """The part of the strength that uses make; 0 where there are none."""
        if not self.count:
            return 0.0
        since = math.sqrt(max(1.0, self.since))
        # What was said to be created after it was used was there when it was.
        age = max(math.sqrt(max(1.0, self.age)), since)
        return 1.0 / since + 2.0 * (self.count - 1) / (age + since)

    def boost(self, importance: float) -> float:
        """Return what a score is multiplied by: 1 + importance · u / (1 + u), u that of uses.

        So never used is 1, used once today half of the way to 1 + importance.

        >>> Use(age=100.0, count=1).boost(0.2), Use(age=100.0).boost(0.2)
        (1.1, 1.0)
        """
        return 1.0 + importance * self.of_uses / (1.0 + self.of_uses)

    @property
    def effective_age(self) -> float:
        """The days after which a frame that is never used is as strong: strength^(−2).

        >>> Use(age=100.0).effective_age
        100.0
        >>> round(Use(age=100.0, count=3, since=4.0).effective_age, 1)
        1.1
        """
        age = max(1.0, self.age)
        # As strength^(−2), but exact where there are no uses.
        more = 1.0 + math.sqrt(age) * self.of_uses
        return age / (more * more)


def days_between(then_us: int, now_us: int) -> float:
    """Return the days from one time to another, both in microseconds; 0 where it is later."""
    return max(0, now_us - then_us) / _DAY_US
