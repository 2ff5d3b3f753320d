"""Refusals: the errors of the system as `StorageFailed`, with a remedy for the common codes."""

import errno
import os

from .errors import StorageFailed


def refused(error: OSError, doing: str, path: str) -> StorageFailed:
    """Convert the system's error to a `StorageFailed` with a remedy for the common codes."""
    remedies = {
        errno.ENOSPC: "Free space on the disk and call again.",
        errno.EDQUOT: "Raise the quota and call again.",
        errno.EFBIG: "Raise the file size limit and call again.",
        errno.EMFILE: "Close files or raise the limit (ulimit -n), and call again.",
        errno.ENFILE: "Close files, or raise the system's limit, and call again.",
        errno.EACCES: "Check the permissions of the file and its folder.",
        errno.EPERM: "Check the permissions of the file and its folder.",
        errno.EROFS: "Open it with mode='r', or mount the file system for writing.",
        errno.EISDIR: "Name a file, not a folder.",
        errno.EINVAL: "Name a regular file.",
        errno.ENXIO: "Name a regular file.",
        errno.EXDEV: "Name the file in its own folder, not a mount of the file alone.",
        errno.EBUSY: "Name the file in its own folder, not a mount of the file alone.",
        errno.ENOTDIR: "Name a path whose parts before the last are folders.",
    }
    code = error.errno or 0
    failure = StorageFailed(
        f"Cannot {doing}: {os.strerror(code) if code else error}",
        where=path,
        remedy=remedies.get(code, "Check the disk."),
    )
    failure.errno = error.errno
    return failure
