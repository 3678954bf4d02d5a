"""params.yaml as text: rows are put in, and everything else stays as it was, comments included."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from pipeline.config.parsing import parsed
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.storage.files import write

DEEP = 2  # spaces of a level


def add_rows(path: Path, text: str, rows: Mapping[str, Mapping[str, Mapping[str, Json]]]) -> None:
    """Write a text with some rows more, by section and name.

    Raises:
        UserError: a row of that name is there, or the text could not take them without another change.
    """
    before, found = parsed(text, str(path)), text
    for section, named in rows.items():
        for name, row in named.items():
            if name in (before.get(section) or {}):
                raise UserError(f"{path}: {section}.{name} is there; choose another name, or take the row out first")
            found = with_row(found, section, name, row)
    after = parsed(found, str(path))
    wanted = {**before, **{section: {**(before.get(section) or {}), **named} for section, named in rows.items()}}
    if after != wanted:
        raise UserError(f"{path}: the rows of {', '.join(rows)} could not be put in without another change")
    write(path, found.encode())


def with_row(text: str, section: str, name: str, row: Mapping[str, Json]) -> str:
    r"""Return a text with one row more at the end of a section, which is made where there is none.

    >>> print(with_row("a:\n  x: {b: 1}  # why\n\n# of c\nc: 2\n", "a", "y", {"d": [1, 2]}))
    a:
      x: {b: 1}  # why
      y:
        d: [1, 2]
    <BLANKLINE>
    # of c
    c: 2
    <BLANKLINE>
    """
    block = [" " * DEEP + f"{name}:", *(" " * 2 * DEEP + line for line in _lines(row))]
    lines = text.splitlines()
    first = next(
        (k for k, line in enumerate(lines) if line.split("#")[0].rstrip() in (f"{section}:", f"{section}: {{}}")), None
    )
    if first is None and any(line.startswith(f"{section}:") for line in lines):
        raise UserError(f"{section}: is written on one line; write a line for each of its rows")
    if first is None:
        return "\n".join([*lines, "", f"{section}:", *block]) + "\n"
    lines[first] = lines[first].replace(f"{section}: {{}}", f"{section}:", 1)
    last = first
    for k in range(first + 1, len(lines)):
        if lines[k].strip() and not lines[k].startswith((" ", "#")):
            break
        if lines[k].startswith(" "):
            last = k
    return "\n".join([*lines[: last + 1], *block, *lines[last + 1 :]]) + "\n"


def _lines(row: Mapping[str, Json]) -> list[str]:
    """Return a mapping as lines of YAML, a line a key; what a key holds stands on its line."""
    found = []
    for key, value in row.items():
        yaml, out = YAML(), StringIO()
        yaml.default_flow_style, yaml.width = True, 10_000
        yaml.dump({key: value}, out)
        found.append(out.getvalue().strip()[1:-1])
    return found
