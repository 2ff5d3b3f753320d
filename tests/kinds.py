"""The kinds of events that Cerata writes, with those of its packs."""

from cerata.engine.events import EventBody
from cerata.engine.packs import load_kind, shipped_packs


def cerata_kinds() -> list[type[EventBody]]:
    """Return the bodies of each event type of Cerata; a pack registers its types when loaded."""
    for pack in shipped_packs():
        for wire_name in pack.events:
            assert load_kind(wire_name)
    return [
        kind
        for kind in EventBody.__subclasses__()
        if kind.__module__.startswith("cerata.") and kind.wire_name
    ]
