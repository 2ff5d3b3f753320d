"""Late imports: an import that the system refuses raises `StorageFailed`.

Owns `loading`, which wraps every import inside a function (tests/test_layout.py). Otherwise a
process at its limit of open files would get a raw `OSError`, or an `ImportError` that looks like a
missing package.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from .errors import CerataError
from .refusals import refused

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
