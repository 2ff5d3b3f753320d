"""The service of one scope: its tools, resources and prompts, independent of the SDK.

Owns the choice of the tool, and the conversion of every exception to an answer. A service has one
store handle, whose scope no argument widens. Leaves out the protocol (`sdk`) and the work of each
tool (`reading`, `writing`).
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cerata.engine.errors import CerataError, InvalidInput, NotFound
from cerata.engine.packs import Role
from cerata.memory.batch.writer import acting
from cerata.memory.store import Store

from . import reading, writing
from .answers import ANSWER_TOKENS_MAX, Answer, error_text, fitted
from .arguments import (
    AssertArguments,
    ChangesArguments,
    CorrectArguments,
    FactsArguments,
    ForgetArguments,
    RecallArguments,
    RememberArguments,
    ShowArguments,
    SinceArguments,
    TopicArguments,
    converted,
    id_of,
)
from .definitions import READING_TOOLS, STATUS_URI, WRITING_TOOLS, Definition

_LOG: Final = logging.getLogger("cerata.mcp")

_FRAME_URI: Final = "cerata://frame/"
_FACT_URI: Final = "cerata://fact/"

_PROMPT_TOKENS: Final = 4_000
"""Tokens of the context in the prompt recall."""

_CHANGES_MAX: Final = 50
"""Changes in the prompt what_changed."""


class _Tool(NamedTuple):
    kind: type[Any]
    """The struct of the arguments."""
    run: Callable[[Store, Any], str]


_READING: Final[Mapping[str, _Tool]] = {
    "recall": _Tool(RecallArguments, reading.recall),
    "show": _Tool(ShowArguments, reading.show),
    "facts": _Tool(FactsArguments, reading.facts),
    "changes": _Tool(ChangesArguments, reading.changes),
}
_WRITING: Final[Mapping[str, _Tool]] = {
    "remember": _Tool(RememberArguments, writing.remember),
    "assert_fact": _Tool(AssertArguments, writing.assert_fact),
    "correct": _Tool(CorrectArguments, writing.correct),
    "forget": _Tool(ForgetArguments, writing.forget),
}


@dataclass(frozen=True, slots=True)
class Service:
    """The answers to one client: a store handle and its options. Any thread may call it.

    Its writes have the rights of a tool, whatever handle it got (`owners`).
    """

    store: Store
    is_read_only: bool = False
    is_recording: bool = False
    """Write each recall as an event."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", acting(self.store, Role.TOOL))

    @property
    def tools(self) -> Sequence[Definition]:
        """The definitions of the tools that this service runs."""
        return READING_TOOLS if self.is_read_only else (*READING_TOOLS, *WRITING_TOOLS)

    def call(self, name: str, arguments: Mapping[str, object]) -> Answer:
        """Run a tool; an exception becomes an answer that is an error."""
        try:
            return Answer(fitted(self._run(name, arguments)))
        except CerataError as error:
            return Answer(fitted(error_text(error)), is_error=True)
        except Exception as error:  # noqa: BLE001 - a fault of one call must not end the server
            return Answer(self._fault(error), is_error=True)

    def _run(self, name: str, arguments: Mapping[str, object]) -> str:
        tools = _READING if self.is_read_only else {**_READING, **_WRITING}
        if name not in tools:
            read_only = " of a read-only server" if name in _WRITING else ""
            raise NotFound(
                f"There is no tool {name!r:.60}{read_only}",
                where="tools/call",
                remedy=f"Call one of {', '.join(tools)}.",
            )
        tool = tools[name]
        values = converted(tool.kind, arguments, name)
        if isinstance(values, RecallArguments):
            return reading.recall(self.store, values, is_recording=self.is_recording)
        return reading.naming_unreadable(lambda: tool.run(self.store, values))

    def _fault(self, error: Exception) -> str:
        """Log an unexpected exception, and return its lines without the traceback."""
        _LOG.exception("a call failed")
        fault = " ".join(f"{type(error).__name__}: {error}".split())
        return fitted(
            f"error: InternalError: {fault[:300]}\n"
            "remedy: Report it with the traceback in the server's log."
        )

    # --- resources and prompts -------------------------------------------------------------------

    def resource(self, uri: str) -> tuple[str, str]:
        """Return the MIME type and the text of a resource.

        Raises:
            NotFound: no such resource exists within the scope.
            InvalidInput: the id is no number.
        """
        if uri == STATUS_URI:
            return "application/json", fitted(json.dumps(self.status(), ensure_ascii=False))
        view = self.store.history.view()
        for prefix in (_FRAME_URI, _FACT_URI):
            if uri.startswith(prefix):
                number = id_of(uri.removeprefix(prefix), prefix + "{id}")
                if reading.is_entry(view, number) == (prefix == _FRAME_URI):
                    return "text/plain", fitted(reading.thing_text(view, number))
        raise NotFound(
            f"There is no resource {uri!r:.100}",
            where="resources/read",
            remedy="Read cerata://status, cerata://frame/12 or cerata://fact/12.",
        )

    def status(self) -> Mapping[str, Any]:
        """Return the values of `upkeep.info` without the path; under a scope, only its counts."""
        info = self.store.upkeep.info()
        if self.store.scope is None:
            return {name: value for name, value in info.items() if name != "file"}
        return {
            "log_id": info["log_id"],
            "head": info["head"],
            "scope": dict(self.store.scope),
            "frames": info["frames"],
            "facts": len(self.store.facts(include_ended=True)),
        }

    def prompt(self, name: str, arguments: Mapping[str, object]) -> str:
        """Return the text of a prompt: an instruction, then a part of the memory.

        Raises:
            NotFound: there is no such prompt.
            InvalidInput: an argument is unknown, missing or not valid.
        """
        if name == "recall":
            topic = converted(TopicArguments, arguments, name).topic
            context = reading.recall(
                self.store, RecallArguments(query=topic, max_tokens=_PROMPT_TOKENS)
            )
            return fitted(f"Answer from this memory about: {topic}\n\n{context}")
        if name == "what_changed":
            since = converted(SinceArguments, arguments, name).since
            changes = reading.naming_unreadable(
                lambda: reading.changes(self.store, ChangesArguments(since, limit=_CHANGES_MAX))
            )
            return fitted(f"Summarize these changes of the memory since {since}.\n\n{changes}")
        raise NotFound(
            f"There is no prompt {name!r:.60}",
            where="prompts/get",
            remedy="Get recall or what_changed.",
        )


def check_cursor(cursor: object) -> None:
    """Refuse a cursor: every list is one page.

    Raises:
        InvalidInput: a cursor was passed.
    """
    if cursor is not None:
        raise InvalidInput(
            f"There is no page {cursor!r:.60}",
            where="cursor",
            remedy="Leave out the cursor: each list has one page.",
        )


__all__ = ["ANSWER_TOKENS_MAX", "Service", "check_cursor"]
