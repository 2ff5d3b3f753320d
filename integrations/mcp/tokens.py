"""The token file: the bearers of a server over HTTP, and the scope of each.

Owns its form, a JSON array of objects with ``token``, ``scope`` and ``read_only``, and its checks.
No error shows a token. Leaves out the comparison with a request (`http`).
"""

import errno
import os
import stat
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from cerata.engine.errors import InvalidInput, NotFound
from cerata.engine.events import ScopeValue
from cerata.engine.refusals import refused

MODE: Final = 0o600

_BYTES_MAX: Final = 1 << 20
_TOKEN_SIZE_MIN: Final = 32


class TokenEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A token, and the rights of its bearer."""

    token: Annotated[str, Meta(min_length=_TOKEN_SIZE_MIN, pattern=r"^[!-~]+$")]
    scope: Annotated[dict[str, ScopeValue], Meta(min_length=1)]
    read_only: bool = False


def tokens_in(path: str) -> Sequence[TokenEntry]:
    """Return the entries of a token file.

    Args:
        path: A regular file of this user with mode 0600.

    Raises:
        NotFound: there is no such file.
        InvalidInput: another user could read or write the file, or its contents are no tokens.
        StorageFailed: the file cannot be read.
    """
    content = _content_of(path)
    try:
        entries = msgspec.json.decode(content, type=list[TokenEntry])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidInput(
            f"The token file is not valid: {error}",
            where=path,
            remedy='Write [{"token": "at least 32 letters", "scope": {"tenant": "acme"}}].',
        ) from error
    if not entries:
        raise InvalidInput("The token file has no token", where=path, remedy="Add an entry.")
    if len({entry.token for entry in entries}) < len(entries):
        raise InvalidInput(
            "The token file has a token twice", where=path, remedy="Give each scope its token."
        )
    return entries


def _content_of(path: str) -> bytes:
    try:
        # Not to wait for a writer, if the path is a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise NotFound(
                "There is no token file", where=path, remedy="Create it with mode 0600."
            ) from error
        raise refused(error, "read the token file", path) from error
    except ValueError as error:
        raise InvalidInput(
            "The path of the token file has a NUL", where="--tokens", remedy="Name a file."
        ) from error
    try:
        _check(os.fstat(descriptor), path)
        content = os.read(descriptor, _BYTES_MAX + 1)
    finally:
        os.close(descriptor)
    if len(content) > _BYTES_MAX:
        raise InvalidInput(
            "The token file is larger than 1 MiB", where=path, remedy="Leave out old tokens."
        )
    return content


def _check(status: os.stat_result, path: str) -> None:
    """Raise `InvalidInput` unless a file is regular, of this user, and closed to other users."""
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput("The token file is no file", where=path, remedy="Name a file.")
    mode = stat.S_IMODE(status.st_mode)
    if mode != MODE or status.st_uid != os.geteuid():
        raise InvalidInput(
            f"The token file must be yours with mode 0600, and has {mode:04o}",
            where=path,
            remedy=f"Run: chmod 600 {path}",
        )
