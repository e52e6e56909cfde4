"""The command line. Each command is one small file; nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

from posviz import __version__
from posviz.errors import ManifestError, PosvizError

# Typer has brought its own copy of click since 0.20; its public BadParameter leads to the right classes in either case.
_UsageError: Any = typer.BadParameter.__mro__[1]
_ClickException: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="posviz",
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


# Each of these adds itself to `app`.
from posviz.cli import batch, capture, compare, info, inspect, methods, recipe, render, train  # noqa: E402, F401


def main() -> None:
    """Run the command line: an error is one line on stderr; 1 for bad input, 2 for wrong usage."""
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
