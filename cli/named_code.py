"""Code that a command names: its modules may be in the current folder.

A content of a memory names no code. So a verb calls this only for words of its command line, or for
a file of settings that these name.
"""

import os
import sys


def add_current_folder() -> None:
    """Let modules be imported from the current folder, after all installed ones.

    The folder may hold files of strangers: none of them takes the place of an installed module.
    """
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)
