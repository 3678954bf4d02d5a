"""The command that says what the keys of params.yaml mean."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import app


def places(incomplete: str) -> list[str]:
    """Return the places of params.yaml that a shell may complete; none where the file is broken."""
    from pipeline.config import load_params
    from pipeline.config.reference import explained
    from pipeline.errors import UserError

    around = incomplete.rpartition(".")[0]
    try:
        rows = explained(load_params(), around)[1]
    except UserError:
        return []
    found = [f"{around}.{key.name}".lstrip(".") for key, _ in rows]
    return [place for place in found if place.startswith(incomplete)]


@app.command("explain-params")
def explain_params(
    place: Annotated[
        str, typer.Argument(help="A place of params.yaml, as agents.deeprm3; all of it without.", autocompletion=places)
    ] = "",
    schema: Annotated[
        Path | None, typer.Option(help="Write a JSON schema for editors here instead (.json).", dir_okay=False)
    ] = None,
) -> None:
    """Say what the keys of params.yaml mean, what they may be, and what they are now.

    Example: python -m pipeline explain-params agents.deeprm3
    """
    from pipeline.config import load_params, reference

    if schema is not None:
        from pipeline import storage
        from pipeline.storage.files import check_out

        check_out(schema, [".json"])
        storage.write_json(schema, reference.schema())
        return
    means, rows = reference.explained(load_params(), place)
    typer.echo(f"{place or 'params.yaml'}: {means}")
    for key, now in rows:
        typer.echo(f"\n  {key.name}: {now}")
        if key.may_be:
            left_out = f"; {key.default} where it is left out" if key.default else ""
            typer.echo(f"    {key.means} ({key.may_be}{left_out})")
