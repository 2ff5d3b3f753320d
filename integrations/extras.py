"""Frameworks that may be missing: their modules, or an error that names the extra.

Owns the error. Leaves out what each integration does with its framework.
"""

import importlib
from collections.abc import Callable, Mapping

from cerata.engine.errors import Unsupported
from cerata.engine.late import install_command, late_names, loading


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


def names_with(
    package: str, module: str, extra: str, homes: Mapping[str, str]
) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package whose names need a framework.

    The framework is loaded with the first name: owners, events and rows of a log need none.

    Args:
        package: The package's ``__name__``.
        module: The framework's module, as `require` takes it.
        extra: The extra that installs the framework.
        homes: The module of each name, relative to the package.
    """
    name_of = late_names(package, homes)

    def needed(name: str) -> object:
        if name in homes:
            require(module, extra)
        return name_of(name)

    return needed
