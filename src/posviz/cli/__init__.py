"""The command line. Each command is one small file, imported when it runs; a new one also has its line below."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from posviz import __version__
from posviz.errors import ManifestError, PosvizError
from posviz.startup import be_brisk

# Typer has brought its own copy of click since 0.20; its public BadParameter leads to the right classes in either case.
_UsageError: Any = typer.BadParameter.__mro__[1]
_ClickException: Any = typer.BadParameter.__mro__[2]

COMMANDS = {  # name, also that of the module: what it does
    "batch": "Draw many figures; what is up to date is left alone.",
    "capture": "Store the numbers behind a figure.",
    "compare": "Compare models head by head.",
    "info": "Tell what a checkpoint is, from its headers alone.",
    "inspect": "Take one head apart, or rank all heads by a number.",
    "methods": "List the positional methods.",
    "recipe": "Print how a figure was made, or check that it can be made again.",
    "render": "Draw the heads of a layer as a grid of heatmaps.",
    "train": "Train a small byte-level GPT with a positional method.",
}


class _Commands(TyperGroup):
    """Knows the commands by name; building all their options would take longer than printing the help."""

    def __init__(self, **said: Any) -> None:
        super().__init__(**said)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            import_module(f"{__name__}.{cmd_name}")  # adds itself to `app`
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            alone.registered_commands = [each for each in app.registered_commands if each.name == cmd_name]
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="posviz",
    cls=_Commands,
    help="See how a transformer encodes position: every head's positional bias, drawn from a trained checkpoint.",
    rich_markup_mode=None,  # plain text: quicker to print, and the same on every terminal
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"posviz {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line: an error is one line on stderr; 1 for bad input, 2 for wrong usage."""
    be_brisk()
    try:
        status = app(prog_name="posviz", standalone_mode=False)  # however it was started
    except ManifestError as error:
        *most, last = str(error).splitlines()
        for line in most:
            print("posviz: " + line, file=sys.stderr)
        _fail(last, 1)
    except PosvizError as error:
        _fail(str(error), 1)
    except (typer.Abort, KeyboardInterrupt):
        _fail("stopped", 130)
    except _ClickException as error:
        _usage(error)
    except MemoryError:
        _fail("there is not enough memory for this; ask for fewer positions (--seq-len) or heads (--heads)", 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)


def _usage(error: Any) -> None:
    if not isinstance(error, _UsageError):
        _fail(error.format_message(), error.exit_code)
    where = error.ctx.command_path if getattr(error, "ctx", None) else "posviz"
    _fail(f"{error.format_message().rstrip('.')} (see {where} --help)", 2)


def _fail(message: str, code: int) -> NoReturn:
    print("posviz: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
