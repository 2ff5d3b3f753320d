"""Loading modules late: an import that the system refuses is `StorageFailed`.

Owns `loading`, in which every import inside a function stands (tests/test_layout.py). Without it a
process at its limit of open files gets a raw `OSError`, or an `ImportError` that looks as if the
package were not installed.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from .errors import CerataError
from .storage import refused

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
        # The loader of shared libraries gives the system's reason as text alone.
        for code in _REFUSALS:
            if os.strerror(code) in str(error):
                raise refused(OSError(code, str(error)), "load", part) from error
        raise
