"""Meaning of every key of params.yaml, for `explain-params`, the site, and editors.

The meaning of a field is the comment on its line or in the lines above it; the allowed values are its type.
"""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel

from pipeline.core.config.params import Params
from pipeline.core.config.records import DISCRIMINATORS, known_names
from pipeline.errors import UserError

WORDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "null": "null"}
BOUNDS = {
    "minimum": "{} or more",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
}
Schema = Mapping[str, Any]


class Key(NamedTuple):
    """A key of a record."""

    name: str
    may_be: str
    default: str  # "" where it must be given
    means: str


@cache
def meanings(record: type[BaseModel]) -> dict[str, str]:
    """Return the comment of each field of a record, including those of its bases."""
    found: dict[str, str] = {}
    for kind in reversed(record.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            found |= _commented(inspect.getsource(kind))
    said = inspect.cleandoc(record.__doc__ or "").splitlines()[0]
    found = {name: means[:1].upper() + means[1:].rstrip(".") for name, means in found.items()}
    selects = f"Which of several this is: {said[:1].lower()}{said[1:].rstrip('.')}"
    return {name: selects if name in DISCRIMINATORS else found.get(name, "") for name in record.model_fields}


def _commented(source: str) -> dict[str, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    lines = source.splitlines()
    found: dict[str, str] = {}
    (record,) = ast.parse(source).body
    for node in record.body if isinstance(record, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            first = node.lineno
            while lines[first - 2].lstrip().startswith("#"):
                first -= 1
            said = [comments[line] for line in range(first, (node.end_lineno or first) + 1) if line in comments]
            if said:
                found[node.target.id] = " ".join(said)
    return found


def records(kind: object = Params) -> dict[str, type[BaseModel]]:
    """Return the records of params.yaml by name, each before those in it."""
    found: dict[str, type[BaseModel]] = {}
    inside: list[object] = [*get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        found[kind.__name__] = kind
        inside += [field.annotation for field in kind.model_fields.values()]
    for part in inside:
        found = {**found, **{name: record for name, record in records(part).items() if name not in found}}
    return found


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of params.yaml, with the meaning of each key."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Params.model_json_schema()}
    for name, record in records().items():
        properties = (found if record is Params else found["$defs"][name])["properties"]
        for key, means in meanings(record).items():
            properties[key]["description"] = means
    return found


def keys(record: type[BaseModel]) -> list[Key]:
    """Return the keys of a record."""
    whole = schema()
    own = whole if record is Params else whole["$defs"][record.__name__]
    found = []
    for name, means in meanings(record).items():
        held = own["properties"][name]
        default = record.model_fields[name].get_default(call_default_factory=True)
        required = name in own.get("required", ())
        found.append(Key(name, may_be(held), "" if required else written(default), means))
    return found


def may_be(held: Schema) -> str:
    """Return the values allowed by a part of a JSON schema, in words.

    >>> may_be({"type": "integer", "exclusiveMinimum": 0, "maximum": 1000})
    'whole number above 0, at most 1,000'
    >>> may_be({"enum": ["cpu", "cuda"]})
    'cpu or cuda'
    >>> may_be({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]})
    '2 of: number'
    """
    if "$ref" in held:
        properties = schema()["$defs"][held["$ref"].rpartition("/")[2]]["properties"]
        selector = next((name for name in DISCRIMINATORS if {"const", "enum"} & {*properties.get(name, ())}), None)
        return may_be(properties[selector]) if selector else f"{{{', '.join(properties)}}}"
    words = [str(held["const"])] if "const" in held else [*map(str, held.get("enum", ()))]
    if words:
        return " or ".join(words)
    if several := held.get("anyOf") or held.get("oneOf"):
        return ", or ".join(map(may_be, several))
    if held["type"] == "array":
        parts = [*map(may_be, held.get("prefixItems", ()))]
        together = f"{len(parts)} of: {parts[0]}" if len(set(parts)) == 1 else f"[{', '.join(parts)}]"
        return together if parts else f"list of: {may_be(held['items'])}"
    if held["type"] == "object":
        inner = held.get("additionalProperties") or next(iter(held["patternProperties"].values()))
        return f"names, each with: {may_be(inner)}"
    bounds = ", ".join(words.format(f"{held[bound]:,}") for bound, words in BOUNDS.items() if bound in held)
    return f"{WORDS[held['type']]} {bounds}".rstrip()


def explained(params: Params, place: str) -> tuple[str, list[tuple[Key, str]]]:
    """Return the meaning of a place of params.yaml, and its keys with their values; a UserError if it is unknown."""
    held: object = params
    means, done = "", ""
    for part in filter(None, place.split(".")):
        known = _parts(held)
        if part not in known:
            raise UserError(f"{done or 'params.yaml'}: no key '{part}'; {known_names(known, part)}")
        if isinstance(held, BaseModel):
            means = meanings(type(held))[part]
        held, done = known[part], f"{done}.{part}".lstrip(".")
    if isinstance(held, BaseModel):
        rows = [(key, written(getattr(held, key.name))) for key in keys(type(held))]
        return inspect.cleandoc(type(held).__doc__ or "").split("\n\n")[0].replace("\n", " "), rows
    rows = [(Key(name, "", "", ""), written(value)) for name, value in _parts(held).items()]
    return means if rows else f"{means}; now: {written(held)}", rows


def _parts(held: object) -> dict[str, object]:
    if isinstance(held, BaseModel):
        return {name: getattr(held, name) for name in type(held).model_fields}
    return dict(held) if isinstance(held, Mapping) else {}


def written(value: object) -> str:
    """Return a value as in params.yaml; for a record, its kind."""
    if isinstance(value, BaseModel):
        kinds = [str(getattr(value, name)) for name in DISCRIMINATORS if name in type(value).model_fields]
        return f"{{{', '.join(kinds)}, ...}}" if kinds else "{...}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(value)}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    return re.sub(r"^(None|True|False)$", lambda word: {"None": "null"}.get(word[0], word[0].lower()), str(value))
