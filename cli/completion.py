"""`likewise completion`: the script that teaches a shell to complete our commands and options."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  likewise completion bash >> ~/.bashrc
  likewise completion zsh >> ~/.zshrc
  likewise completion fish > ~/.config/fish/completions/likewise.fish
"""


@click.command(short_help="Print the shell's completion script.", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL, to be read by the shell when it starts."""
    from click.shell_completion import get_completion_class

    from likewise.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None, "every choice is a shell that click knows"
    script = kind(cli, {}, "likewise", "_LIKEWISE_COMPLETE")
    # `source()` would start a bash to ask for its version; whoever asks for the script has one.
    click.echo(script.source_template % script.source_vars())
