# Where the extra langgraph is missing, its types are unknown.
# pyright: basic, reportMissingImports=false
"""Values of LangGraph as typed bytes, and the refusal of pickles.

Owns the checks around a serializer. A pickle runs code of whoever wrote it, so no serializer may
make or read one.
"""

from types import ModuleType
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from cerata.engine.errors import Corrupt, InvalidInput, Unsupported

_PICKLE = "pickle"
_PICKLERS = frozenset({"pickle", "cPickle", "cloudpickle", "dill", "marshal", "joblib"})

Typed = tuple[str, bytes]
"""The name of an encoding, and the encoded value."""


def check_serializer(serde: object) -> None:
    """Refuse a serializer that pickles, also inside another serializer: `InvalidInput`."""
    inner: object = serde
    for _ in range(8):
        is_module = isinstance(inner, ModuleType) and inner.__name__ in _PICKLERS
        if is_module or getattr(inner, "pickle_fallback", False):
            raise InvalidInput(
                f"The serializer {serde!r:.80} pickles values, and a pickle can run any code",
                remedy="Pass JsonPlusSerializer(), and list your types in "
                "allowed_msgpack_modules=.",
            )
        inner = getattr(inner, "serde", None)
        if inner is None:
            return


def encoded(serde: SerializerProtocol, value: Any) -> Typed:
    """Return a value as typed bytes.

    Raises:
        InvalidInput: the serializer pickled the value, or returned no bytes.
    """
    encoding, data = serde.dumps_typed(value)
    if _is_pickle(encoding) or not isinstance(data, bytes | bytearray):
        raise InvalidInput(
            f"The serializer stored a {type(value).__name__} as {encoding!r}",
            remedy="Use a serializer that returns bytes and does not pickle.",
        )
    return encoding, bytes(data)


def decoded(serde: SerializerProtocol, encoding: str, data: bytes, where: str) -> Any:
    """Return the value of typed bytes.

    Raises:
        Unsupported: the value is a pickle.
        Corrupt: the serializer cannot read the value.
    """
    if _is_pickle(encoding):
        raise Unsupported(
            "A value of the thread is a pickle, which Cerata never reads",
            where=where,
            remedy="Write the checkpoint again with a serializer that does not pickle.",
        )
    try:
        return serde.loads_typed((encoding, data))
    except MemoryError:
        raise
    except Exception as error:
        raise Corrupt(
            f"The serializer cannot read a value as {encoding!r:.60}: "
            f"{type(error).__name__}: {error!s:.200}",
            where=where,
            remedy="Read it with the serializer that wrote it, or delete the checkpoint.",
        ) from error


def decoded_map(serde: SerializerProtocol, encoding: str, data: bytes, where: str) -> Any:
    """Return the value of typed bytes, which is a dict. Raises as `decoded`."""
    value = decoded(serde, encoding, data, where)
    if not isinstance(value, dict):
        raise Corrupt(
            f"A checkpoint or its metadata is a {type(value).__name__}, not a dict",
            where=where,
            remedy="Delete the checkpoint.",
        )
    return value


def _is_pickle(encoding: str) -> bool:
    # An encrypting serializer adds "+" and the cipher's name.
    return encoding.partition("+")[0] == _PICKLE
