"""The events of agents: activities, and the calls of their runs.

Owns the bodies. Leaves out their fold (`projection`) and the recorder that writes them
(`cerata.agents.recording`). *Activity* and *used* are terms of W3C PROV.
"""

from cerata.engine.events import EventBody, event

ACTIVITY_KINDS = ("session", "run")
STATUSES = ("done", "failed", "left")
CALL_KINDS = ("tool", "input", "model", "function", "clock", "random")
DIGEST_SIZE = 32
"""Bytes of `RecordCall.digest`."""


@event(
    "startActivity",
    references={"parent": "startActivity", "frame": "putFrame", "resumes": "startActivity"},
)
class StartActivity(EventBody, frozen=True, kw_only=True):
    """A session or run starts, or starts again; its id is the seq of its first start.

    ``kind`` is session or run, ``name`` the id that the caller passed, ``parent`` the session of a
    run, and ``frame`` the run's frame, under which its results are. ``resumes`` names the first
    start, if the activity starts again; with ``replays`` its calls so far are answered from the
    log. ``function`` is the module and name of a run's function, and ``code`` H of its source.
    """

    makes_id = True

    kind: str
    name: str
    agent: str
    agent_version: str
    workflow: str | None = None
    parent: int | None = None
    frame: int | None = None
    resumes: int | None = None
    replays: bool = False
    function: str | None = None
    code: bytes | None = None

    def describe(self) -> str:
        """Return the activity and its agent."""
        return f"{self.kind} {self.name} of {self.agent} {self.agent_version}"


@event("endActivity", references={"activity": "startActivity"})
class EndActivity(EventBody, frozen=True, kw_only=True):
    """An activity ends: done, failed (its block raised) or left (abandoned).

    ``error`` is the type and message of the exception.
    """

    activity: int
    status: str
    error: str | None = None

    def describe(self) -> str:
        """Return the activity, its status and its error."""
        return f"#{self.activity} {self.status}{_error_text(self.error)}"


@event(
    "recordCall",
    references={
        "activity": "startActivity",
        "used": "putFrame",
        "facts": "assertFact",
        "results": "putFrame",
    },
)
class RecordCall(EventBody, frozen=True, kw_only=True):
    """A call of an activity finished.

    ``kind`` is tool, input, model, function, clock or random; ``name`` and ``version`` are those of
    the function. ``turn`` counts from 1, and is 0 for inputs. ``arguments`` are canonical JSON
    without secret arguments, ``digest`` H of the name, a zero byte and ``arguments``. ``used`` are
    the frames and ``facts`` the facts that the arguments came from; ``results`` are the frames that
    the call made. A call of the clock or of randomness has no frame, but its result in ``value``,
    as JSON. A call that raised has the type and message in ``error``. ``overlaps`` counts the calls
    of the activity that finished while this call ran.
    """

    activity: int
    kind: str
    name: str
    version: str | None = None
    turn: int = 1
    arguments: str
    digest: bytes
    used: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    error: str | None = None
    value: str | None = None
    overlaps: int = 0

    def describe(self) -> str:
        """Return the call with its arguments and its error."""
        call = f"{self.kind} {self.name} {self.arguments}"
        return f"{call} in #{self.activity}{_error_text(self.error)}"


def _error_text(error: str | None) -> str:
    return f": {error}" if error else ""
