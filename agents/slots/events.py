"""The event of slots: an agent declares a slot of its memory.

Owns the body. Leaves out its fold (`rows`) and the check of a declaration
(`cerata.agents.declarations`).
"""

from cerata.engine.events import EventBody, event


@event("putSlot")
class PutSlot(EventBody, frozen=True, kw_only=True):
    """A slot of an agent's memory is declared; the declaration holds from this event on.

    ``spec`` is the MemorySpec without schema and upcasters, as canonical JSON; ``schema`` the JSON
    Schema of the values, never an import path.
    """

    keeps_run = True

    agent: str
    slot: str
    spec: str
    schema: str | None = None

    def describe(self) -> str:
        """Return the agent, the slot and its declaration."""
        return f"{self.agent}/{self.slot} {self.spec}"
