"""`posviz methods`: what can be drawn."""

from __future__ import annotations

import typer

from posviz.cli import app


@app.command("methods")
def methods(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the positional methods."""
    import json

    from posviz import methods as registry

    rows = [
        {
            "method": name,
            "title": (method := registry.get(name)).title,
            "drawn": method.drawn,
            "token_dependent": method.token_dependent,
            "reference": method.reference,
        }
        for name in registry.names()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    width = max(len(str(row["drawn"])) for row in rows)
    print(f"{'method':<14} {'drawn':<{width}} {'tokens':<7} reference")
    for row in rows:
        tokens = "yes" if row["token_dependent"] else "no"
        print(f"{row['method']:<14} {row['drawn']:<{width}} {tokens:<7} {row['reference']}")
