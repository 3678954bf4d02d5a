"""Bounded reading of YAML from users and DVC: a small file cannot exhaust memory or the stack."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import Node

from pipeline.errors import UserError

DEEPEST = 50  # nested lists and mappings
MOST = 200_000  # values, with those of an alias counted at each use
LARGEST = 4_000_000  # characters
# Content that DVC never writes: an anchor, or deep nesting. The fast compiled reader is for the long files of DVC.
STRANGE = re.compile(r"(?:^|[\s\[{,])[&*]\w|^[ ?-]{100}|[\[{][^\]}]*[\[{]", re.MULTILINE)


class Bounded(Composer):
    """A composer with bounds."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self._deep, self._found, self._sizes = 0, 0, dict[str, int]()  # sizes: of complete nodes, by anchor

    def compose_node(self, parent: Node | None, index: Any) -> Any:
        """Compose a node and its children."""
        event, before = self.parser.peek_event(), self._found
        anchor, alias = str(event.anchor), isinstance(event, AliasEvent)
        if alias and anchor in self.anchors and anchor not in self._sizes:
            self._refuse(f"'*{anchor}' is in itself", event)
        self._found += self._sizes.get(anchor, 1) if alias else 1
        self._deep += 1
        if self._deep > DEEPEST:
            self._refuse(f"nested more than {DEEPEST} deep", event)
        if self._found > MOST:
            self._refuse(f"more than {MOST} values, those of aliases counted", event)
        node = super().compose_node(parent, index)
        self._deep -= 1
        if not alias:
            self._sizes[anchor] = self._found - before
        return node

    def _refuse(self, why: str, event: Any) -> NoReturn:
        raise MarkedYAMLError(problem=why, problem_mark=event.start_mark)


def read_text(path: Path, most: int = 0) -> str:
    """Return the content of a text file of at most `most` characters (0: any number, for files of the repository)."""
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(most + 1 if most else -1)  # /dev/zero has no end
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); run this at the repository's root") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x}") from error
    if 0 < most < len(text):
        raise UserError(f"{path}: expected at most {most} characters")
    return text


def value_at(values: Any, place: str) -> Any:
    """Return the value of nested mappings at a place, such as evaluation.confidence; None if there is none."""
    for key in place.split("."):
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def parsed(text: str, where: str, of_dvc: bool = False) -> Any:
    """Return the content of a YAML text; only DVC's (`of_dvc`) may be long.

    An invalid text, or one that exceeds the bounds, raises a UserError with file and line.
    """
    if of_dvc and not STRANGE.search(text):
        yaml = YAML(typ="safe")
    else:  # the pure reader has clearer error messages, with the right line
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = Bounded
        if len(text) > LARGEST:
            raise UserError(f"{where}: expected at most {LARGEST} letters, found {len(text)}")
    try:
        return yaml.load(text)
    except MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{where}{line}: not YAML: {error.problem or error.context}") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{where}: not YAML: {' '.join(str(error).split())[:200]}") from error
