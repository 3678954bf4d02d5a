"""An extension of Griffe, which reads the source for the pages of the API: the house's own conventions.

The comment on a field's line, or in the lines above it, documents the field. A doctest may be anywhere in a docstring.
"""

import ast
import re
from typing import Any

from griffe import Attribute, Class, Docstring, Extension, Object

SHAPE = re.compile(r"^(\[[^\]]*\]) +")  # of an array, as in "[B, M]  known run time"
BLANK = "\u200b"  # instead of a comment: Griffe wants one
DOCTEST = re.compile(r"^>>> .*\n?(?:.+\n?)*", flags=re.MULTILINE)


class Conventions(Extension):
    """Docstrings in the form that Griffe expects."""

    def on_attribute_instance(self, *, node: Any, attr: Attribute, **_: object) -> None:
        """Keep the comment of an attribute without a docstring; that of a module's is its docstring."""
        if attr.docstring is None and isinstance(node, ast.Assign | ast.AnnAssign):
            lines = list(attr.lines_collection[attr.filepath])
            text = comment(lines, node.lineno, node.end_lineno or node.lineno)
            if text and attr.parent and attr.parent.is_module:
                attr.docstring = Docstring(text[:1].upper() + text[1:], parent=attr)
            attr.extra["comments"]["text"] = text or BLANK

    def on_class(self, *, cls: Class, **_: object) -> None:
        """List the fields of a class, which have annotations, in its docstring."""
        said = {name: member.extra["comments"].get("text", BLANK) for name, member in cls.attributes.items()}
        fields = [f"    {name}: {text}" for name, text in said.items() if cls[name].annotation and name[0] != "_"]
        if fields and cls.docstring:
            cls.docstring.value = "\n".join([cls.docstring.value, "", "Attributes:", *fields])

    def on_object(self, *, obj: Object, **_: object) -> None:
        """Mark doctests as code."""
        if obj.docstring:
            obj.docstring.value = DOCTEST.sub(r"```pycon\n\g<0>\n```\n", obj.docstring.value)


def comment(lines: list[str], first: int, last: int) -> str:
    """Return the comment in the lines above a statement and at its end, with the shape of an array as code."""
    above = first - 1
    while above and lines[above - 1].lstrip().startswith("#"):
        above -= 1
    said = [line.strip().lstrip("# ") for line in lines[above : first - 1]]
    said += [lines[last - 1].partition("  # ")[2].partition("  # ")[0].strip()]
    return SHAPE.sub(r"`\1` ", " ".join(part for part in said if part))
