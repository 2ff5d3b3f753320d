"""The verb that prints a shell's script for completion: completion."""

from argparse import Namespace

from argcomplete.shell_integration import shellcode

from .output import Output


def run_completion(options: Namespace, output: Output) -> int:
    """Print the shell's script."""
    script = shellcode(["cerata"], shell=options.shell)
    output.line(script.strip(), wraps=False)
    output.result({"shell": options.shell, "script": script})
    return 0
