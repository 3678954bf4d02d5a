"""The report as one HTML page, from numbers and pictures; without access to files."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

TEMPLATES = Path(__file__).parent / "templates"


def template(name: str) -> Template:
    """Return a template of this package: values are escaped, and missing ones are errors."""
    return Environment(
        loader=PackageLoader("pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
