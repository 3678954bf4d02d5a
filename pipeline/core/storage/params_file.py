"""Edits of params.yaml as text: new rows and changed values; all other bytes stay, including comments."""

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from pipeline.core.config.parsing import parsed
from pipeline.core.types import Json
from pipeline.errors import UserError

DEEP = 2  # spaces of a level
Rows = Mapping[str, Mapping[str, Mapping[str, Json]]]  # by section and name


def with_rows(where: str, text: str, rows: Rows) -> tuple[str, list[str]]:
    """Return the text with the rows, and a line for each change; UserError if other text would have to change."""
    before, found, said = parsed(text, where), text, []
    for section, named in rows.items():
        there = before.get(section) or {}
        for name, row in named.items():
            if name not in there:
                found = with_row(found, section, name, row)
                said.append(f"added {section}.{name}")
            for place, old, value in _changes(there[name], row) if name in there else ():
                found = with_value(found, (section, name, *place), value)
                what = f"{'.'.join((section, name, *place))}: {_flow(value)}"
                said.append(f"added {what}" if old is None else f"changed {what}, before {_flow(old)}")
    try:
        after = parsed(found, where)
    except UserError:
        after = None
    if after != _merged(before, rows):
        raise UserError(f"{where}: the rows of {', '.join(rows)} could not be put in without another change")
    return found, said


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Json, Json]]:
    """Yield the place of each new or changed value, the old value and the new one."""
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            yield from (((key, *place), was, now) for place, was, now in _changes(old, value))
        elif old != value:
            yield (key,), old, value


def _merged(before: Any, rows: Any) -> Any:
    if not isinstance(before, Mapping) or not isinstance(rows, Mapping):
        return rows
    return {**before, **{key: _merged(before.get(key), value) for key, value in rows.items()}}


def with_value(text: str, place: Sequence[str], value: Json) -> str:
    """Return a text with one value changed, or added to an existing mapping."""
    around: Any = YAML(pure=True).compose(text)
    for part in place[:-1]:
        around = next(child for key, child in around.value if key.value == part)
    pairs, new = around.value, f"{_flow([place[-1]])[1:-1]}: {_flow(value)}"
    for key, old in pairs:
        if key.value == place[-1]:
            colon, first, after = text.index(":", key.end_mark.index) + 1, old.start_mark.index, _end(old)
            return f"{text[:colon]} {_flow(value)}{text[colon:first].rstrip()}{text[after:]}"
    if not pairs:
        return f"{text[: around.start_mark.index]}{{{new}}}{text[around.end_mark.index :]}"
    if around.flow_style:
        last = _end(pairs[-1][1])
        return f"{text[:last]}, {new}{text[last:]}"
    first = pairs[0][0].start_mark
    return f"{text[: first.index]}{new}\n{' ' * first.column}{text[first.index :]}"


def _end(node: Any) -> int:
    """Return the end of a value's text; the parser's end of a block is after its comments."""
    if getattr(node, "flow_style", True) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def with_row(text: str, section: str, name: str, row: Mapping[str, Json]) -> str:
    r"""Return a text with one more row at the end of a section, which may be new.

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
    block = [" " * DEEP + f"{name}:", *(f"{' ' * 2 * DEEP}{key}: {_flow(value)}" for key, value in row.items())]
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


def _flow(value: Json) -> str:
    yaml, out = YAML(), StringIO()
    yaml.default_flow_style, yaml.width = True, 10_000
    yaml.dump({"": value}, out)
    return out.getvalue().strip().partition(": ")[2][:-1]
