"""The verb of shells: completion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cerata.engine.verbs import Arg, Verb

if TYPE_CHECKING:
    from argparse import Namespace

    from .output import Output

VERBS: Final = (
    Verb(
        "completion",
        "admin",
        "print the script that completes verbs and options in a shell",
        "cerata.cli.admin:run_completion",
        (Arg("shell", "the shell", choices=("bash", "zsh", "fish")),),
        (
            "bash > ~/.bash_completion",
            'zsh > "${fpath[1]}/_cerata"',
            "fish > ~/.config/fish/completions/cerata.fish",
        ),
        scoped=False,
    ),
)


def run_completion(options: Namespace, output: Output) -> int:
    """Print the shell's script."""
    from argcomplete.shell_integration import shellcode

    script = shellcode(["cerata"], shell=options.shell)
    output.line(script.strip(), wraps=False)
    output.result({"shell": options.shell, "script": script})
    return 0
