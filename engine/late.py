"""Modules that are imported when their first name is used.

Owns `late` and `late_names`. Most of the time of a short process goes into imports, numpy's first,
and few commands need them all. Type checkers see the plain import::

    if TYPE_CHECKING:
        import numpy as np
    else:
        np = late("numpy")
"""

import errno
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module

from .errors import CerataError, refused


class Late:
    """A module that is not imported yet: its names are looked up once, then kept here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        with loading(self._name):
            value: object = getattr(import_module(self._name), name)
        if not name.startswith("__"):
            setattr(self, name, value)
        return value


def late(name: str) -> Late:
    """Return a module by its absolute name; it is imported when a name of it is used.

    Using a name raises `StorageFailed` if the system refuses to read a module's file.
    """
    return Late(name)


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package whose names are loaded with their first use.

    Args:
        package: The package's ``__name__``.
        homes: The module of each name, relative to the package.
    """

    def name_of(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with loading(package):
            value: object = getattr(import_module(f"{package}.{home}"), name)
        return value

    return name_of


# --- Late imports: an import that the system refuses raises `StorageFailed` -----------------------
#
# Otherwise a process at its limit of open files would get a raw `OSError`, or an `ImportError` that
# looks like a missing package.


_REFUSALS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EACCES)


@contextmanager
def loading(part: str) -> Generator[None]:
    """Import modules in the block; ``part`` names them in an error.

    Python imports a module again after a failure, so the caller may call again.

    Raises:
        StorageFailed: the system refused to read a module's file.
    """
    try:
        yield
    except CerataError:
        raise
    except OSError as error:
        raise refused(error, "load", part) from error
    except ModuleNotFoundError:
        raise
    except ImportError as error:
        # The loader of shared libraries gives the system's reason only as text.
        for code in _REFUSALS:
            if os.strerror(code) in str(error):
                raise refused(OSError(code, str(error)), "load", part) from error
        raise


# --- Extras: the command that installs one. Nothing is published, so it needs a checkout ----------


def install_command(extra: str) -> str:
    """Return the words of a remedy that install an extra of Cerata.

    >>> install_command("plot")
    "pip install '.[plot]' in a checkout of Cerata"
    """
    return f"pip install '.[{extra}]' in a checkout of Cerata"
