"""The recorder of a session: it appends messages, and recognises repetitions.

Owns the drafts of messages and their keys. Leaves out reads (`exchanges`).

- Both messages of an exchange are one batch; the causation of the reply is the question.
- The same id in a session is the same message: the key of its batch. Without an id, the newest
  message of the session is the same if it has the same role and text and is at most 60 seconds
  older; two processes may race here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Final, NamedTuple

import msgspec

from cerata.engine.arguments import expect_text
from cerata.engine.errors import InvalidInput, value_text
from cerata.engine.events import PutFrame, Scope
from cerata.engine.integrity import hash_bytes
from cerata.memory.batch.session import WriteSession
from cerata.memory.embeddings.drafts import put_embedded
from cerata.memory.frames.drafts import check_not_empty, frame_draft, frame_fields
from cerata.memory.values.arguments import arguments_hash
from cerata.memory.values.frames import Receipt
from cerata.projections.columnar.scopes import by_name, scope_text
from cerata.projections.columnar.times import to_microseconds

from ..turns.projection import MESSAGE_KIND
from .exchanges import ASSISTANT, USER, Talk

ROLES: Final = (USER, ASSISTANT)

REPETITION_US: Final = 60 * 1_000_000
"""An equal message within this time is the same, as in the source."""

ID_SIZE_MAX: Final = 200
"""Bytes of a caller's id of a message."""

_HASH_SIZE: Final = 8


class Part(NamedTuple):
    """A message to be put: its role and text."""

    role: str
    text: str


class Recorder:
    """Puts the messages of a session. One thread at a time may call it."""

    def __init__(
        self,
        writer: WriteSession,
        agent: str,
        session: str,
        identity: Scope,
        check: Callable[[], None],
    ) -> None:
        """Create a recorder.

        Args:
            writer: Writes in the scope of the session's messages.
            agent: The agent's name.
            session: The session's name.
            identity: The scope of the session without thread and mode.
            check: Refuses a write inside a transaction.
        """
        self._writer = writer
        self.agent = agent
        self._session = session
        self._identity = identity
        self._check = check
        self._of_role: dict[str, PutFrame] = {}
        self._newest: tuple[int, Part | None] = -1, None
        """The last message of this object, and the event after which nothing was appended."""

    def put(
        self,
        parts: Sequence[Part],
        message: str | None,
        created: date | str | None,
    ) -> Receipt:
        """Put messages as one batch, the reply because of the question. Durable on return.

        Raises:
            InvalidInput: a role is unknown, a text is empty, the time has no zone, the id is
                unusable, or a transaction is open.
            IdempotencyConflict: the id was used for other messages of the session.
        """
        self._check()
        self._writer.check_writable()
        for part in parts:
            if part.role not in ROLES:
                raise InvalidInput(
                    f"role is {value_text(part.role):.60}, expected 'user' or 'assistant'",
                    remedy="Put results of tools with a run, and other texts with remember().",
                )
            expect_text("text", part.text)
            check_not_empty(part.text)
        key = None if message is None else self._key(message)
        head, newest = self._newest
        # One look at the log serves the whole call. Without a read, if nothing was appended since
        # and the last message differs.
        through = self._writer.newest_known_seq()
        if key is None and (newest == parts[-1] or through != head):
            repeated = self._repeated(parts, created)
            if repeated is not None:
                return repeated
        scope = self._writer.scope
        assert scope is not None
        created_us = None if created is None else to_microseconds(created)
        drafts = [
            frame_draft(part.text, self._fields(part.role, created_us), scope) for part in parts
        ]
        drafts[1:] = [msgspec.structs.replace(draft, causation=-1) for draft in drafts[1:]]
        # The time and the mode may differ when a message is sent again.
        said = None if key is None else arguments_hash([[part.role, part.text] for part in parts])
        receipt = put_embedded(self._writer, drafts, key, arguments=said, through=through)
        self._newest = receipt.seqs[-1] if receipt.seqs else -1, parts[-1]
        return receipt

    def pass_over(self, seq: int) -> None:
        """Note an event of the session that is no message: the newest message stays the newest."""
        head, newest = self._newest
        if seq == head + 1:
            self._newest = seq, newest

    def _fields(self, role: str, created_us: int | None) -> PutFrame:
        """Return a message without its text; the checks of a role's fields are made once."""
        fields = self._of_role.get(role)
        if fields is None:
            fields = frame_fields(kind=MESSAGE_KIND, role=role, track=self.agent)
            self._of_role[role] = fields
        if created_us is None:
            return fields
        return msgspec.structs.replace(fields, created=created_us)

    def _key(self, message: str) -> str:
        expect_text("id", message)
        if not message or len(message.encode()) > ID_SIZE_MAX:
            raise InvalidInput(
                f"id is {message!r:.60}, expected 1 to {ID_SIZE_MAX} bytes",
                remedy="Pass the id that the chat gives to the message.",
            )
        scope = hash_bytes(scope_text(by_name(self._identity)).encode())[:_HASH_SIZE].hex()
        return f"message:{self.agent}/{self._session}/{scope}/{message}"

    def _repeated(self, parts: Sequence[Part], created: date | str | None) -> Receipt | None:
        """Return the receipt of the newest messages if they are these; else None."""
        snapshot = self._writer.snapshot()
        talk = Talk(snapshot, self.agent, session=self._session).newest(len(parts))
        if len(talk.rows) != len(parts):
            return None
        columns = talk.messages.columns
        now = self._writer.log.environment.now_us() if created is None else to_microseconds(created)
        ids: list[int] = []
        rows = talk.rows.tolist()
        talk.read_texts(rows)
        for part, row in zip(parts, rows, strict=True):
            age = now - columns.created.item(row)
            message = talk.message((row,))
            if (message.role, message.text) != part or abs(age) > REPETITION_US:
                return None
            ids.append(message.id)
        return self._writer.unchanged(snapshot, ids[0], tuple(ids))
