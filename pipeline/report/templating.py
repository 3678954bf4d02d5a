"""How pages are written from their templates: what they are given is text, and nothing that is missing stays unseen."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

TEMPLATES = Path(__file__).parent / "templates"


def template(name: str) -> Template:
    """Return a template of this package.

    What is put into it is escaped, and a name that it is not given is an error.
    """
    return Environment(
        loader=PackageLoader("pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
