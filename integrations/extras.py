"""Frameworks that may be missing: their modules, or an error that names the extra.

Owns the error. Leaves out what each integration does with its framework.
"""

import importlib

from cerata.engine.errors import Unsupported
from cerata.engine.extras import install_command
from cerata.engine.loading import loading


def require(module: str, extra: str) -> None:
    """Import a framework's module.

    Args:
        module: The module without which the integration cannot run.
        extra: The extra of Cerata that installs the framework; with "_" for "-" the name of the
            sub-package.

    Raises:
        Unsupported: the framework is not installed.
    """
    try:
        with loading(module):
            importlib.import_module(module)
    except ImportError as error:
        raise Unsupported(
            f"cerata.integrations.{extra.replace('-', '_')} needs {module}, which is not installed",
            remedy=f"Run {install_command(extra)}.",
        ) from error
