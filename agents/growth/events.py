"""The event of growth: a person's verdict on a proposal of an agent.

Owns the body. Leaves out the gates (`gates`), and the rules that a batch must pass (`rules`).
"""

from typing import Final

from cerata.engine.errors import InvalidInput
from cerata.engine.events import EventBody, event

VERDICTS: Final = ("approve", "reject", "revoke")
CONTENT_SIZE: Final = 32
"""Bytes of `Judge.content`."""


@event("judge", references={"proposal": "putFrame"})
class Judge(EventBody, frozen=True, kw_only=True):
    """A person judged a proposal of an agent; the envelope's actor is the person.

    ``verdict`` is approve, reject or revoke. ``content`` is the `judged_hash` of the proposal's
    target and text, as the person saw them.
    """

    changes = ("proposal",)
    needs_actor = "Pass actor='NAME' to judge(), or Draft(actor=…)."

    proposal: int
    verdict: str
    content: bytes

    def check(self) -> None:
        """Check the fields that msgspec does not.

        Raises:
            InvalidInput: the verdict is unknown, or the content has another size.
        """
        if self.verdict not in VERDICTS:
            raise InvalidInput(
                f"verdict is {self.verdict!r:.40}, expected one of {', '.join(VERDICTS)}",
                remedy="Judge with cerata.agents.judge().",
            )
        if not isinstance(self.content, bytes) or len(self.content) != CONTENT_SIZE:
            raise InvalidInput(
                f"content of the verdict is {self.content!r:.40}, expected {CONTENT_SIZE} bytes",
                remedy="Judge with cerata.agents.judge(), which takes it from the proposal.",
            )

    def is_copied(self, point: int) -> bool:
        """Return whether the parent has the proposal: a later one gets another salt there.

        No person has judged the proposal under its other salt.
        """
        return self.proposal <= point

    def describe(self) -> str:
        """Return the verdict and the frame that it judges."""
        return f"{self.verdict} #{self.proposal}"
