"""A Typer app with two commands and nothing else: the floor of a command line."""

import typer

app = typer.Typer(rich_markup_mode=None)


@app.command()
def draw(path: str, size: int = typer.Option(512, help="How large.")) -> None:
    """Draw something."""
    print(path, size)


@app.command()
def tell(path: str, as_json: bool = typer.Option(False, "--json", help="As JSON.")) -> None:
    """Tell something."""
    print(path, as_json)


if __name__ == "__main__":
    app()
