"""Extras: the command that installs one. Nothing is published, so it needs a checkout.

Leaves out the check for the packages, which each feature makes at its first use.
"""


def install_command(extra: str) -> str:
    """Return the words of a remedy that install an extra of Cerata.

    >>> install_command("plot")
    "pip install '.[plot]' in a checkout of Cerata"
    """
    return f"pip install '.[{extra}]' in a checkout of Cerata"
