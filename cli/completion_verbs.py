"""The parser of completion, and the answers to a shell that completes a command."""

import os

from .verb_parser import Adding, Parser, add_verb

_SHELLS = ("bash", "zsh", "fish")


def add_verbs(adding: Adding) -> None:
    """Add completion."""
    completion = add_verb(
        adding,
        "completion",
        "print the script that completes verbs and options in a shell",
        "completion.run_completion",
        scoped=False,
        examples=(
            "completion bash > ~/.local/share/bash-completion/completions/cerata",
            'completion zsh > "${fpath[1]}/_cerata"',
            "completion fish > ~/.config/fish/completions/cerata.fish",
        ),
    )
    completion.add_argument("shell", choices=_SHELLS, help="the shell")


def is_shell_asking() -> bool:
    """Return True if a shell asks for completions; the words are then in its variables."""
    return "_ARGCOMPLETE" in os.environ


def answer_shell(parser: Parser) -> None:
    """Print completions and exit, if a shell asks for them."""
    if is_shell_asking():
        # Imported here: only a shell's question needs it.
        import argcomplete
        from argcomplete.completers import FilesCompleter

        argcomplete.autocomplete(parser, default_completer=FilesCompleter())
