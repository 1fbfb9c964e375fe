"""The command line: a module a command, found by its name in this folder.

A module without an underscore is the command of its name, and has a class that derives from
`Command`; one with several is a group of commands. Everything heavy is imported when a command
runs, so that help and mistakes answer at once.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

import click

from drift import __version__
from drift._checks import suggest
from drift.cli._command import as_click

__all__ = ["app", "main"]

_ABOUT = "Classifiers that follow a stream which drifts, on a budget of memory and time."
_EXAMPLES = f"""\
{_ABOUT}

  drift models                           which model to take, and all there are
  drift compare data.csv --target label  models side by side on your file
  drift demo                             Kafka workers, one of which is killed

`drift --help` lists all commands, `drift COMMAND --help` what one takes."""


class _Commands(click.Group):
    """The modules of this folder; imported when used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = [module.name for module in pkgutil.iter_modules(__path__)]
        return sorted(name for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        known = self.list_commands(ctx)
        if cmd_name not in known:
            ctx.fail(f"no command {cmd_name!r}: {suggest(cmd_name, known)}")
        return as_click(import_module(f"{__name__}.{cmd_name}"))


@click.group(cls=_Commands, help=_ABOUT, invoke_without_command=True)
@click.version_option(__version__, message="drift %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """Show three examples where no command is given."""
    if context.invoked_subcommand is None:
        click.echo(_EXAMPLES)


def main() -> None:
    """Run the command line; the console script ``drift``."""
    app()
