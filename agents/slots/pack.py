"""The pack of slots: the memory that each agent declares.

Owns the names of the pack's parts. Reading it loads no other module of the pack.
"""

from typing import Final

from cerata.engine.packs import Owned, Pack, Role, State

_EVENTS: Final = "cerata.agents.slots.events"

PACK: Final = Pack(
    name="slots",
    events={"putSlot": _EVENTS},
    acts={"putSlot": "slot"},
    states=(State("slots", "slots/1/0cb745685e324755", "cerata.agents.slots.rows:Slots"),),
    owns=(Owned("slots", Role.AGENT, ("value",), ("slot:",), ("putSlot",)),),
    resident=(_EVENTS,),
)
