"""Shell completion: the verb that prints a shell's script, and the answers to the shell."""

import os
from argparse import Namespace

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.shell_integration import shellcode

from .output import Output
from .verb_parser import Adding, Parser, add_verb

_SHELLS = ("bash", "zsh", "fish")


def add_verbs(adding: Adding) -> None:
    """Add completion."""
    completion = add_verb(
        adding,
        "completion",
        "print the script that completes verbs and options in a shell",
        run_completion,
        examples=(
            "completion bash > ~/.local/share/bash-completion/completions/cerata",
            'completion zsh > "${fpath[1]}/_cerata"',
            "completion fish > ~/.config/fish/completions/cerata.fish",
        ),
    )
    completion.add_argument("shell", choices=_SHELLS, help="the shell")


def run_completion(options: Namespace, output: Output) -> int:
    """Print the shell's script."""
    script = shellcode(["cerata"], shell=options.shell)
    output.line(script.strip())
    output.result({"shell": options.shell, "script": script})
    return 0


def answer_shell(parser: Parser) -> None:
    """Print completions and exit, if a shell asks for them."""
    if "_ARGCOMPLETE" in os.environ:
        argcomplete.autocomplete(parser, default_completer=FilesCompleter())
