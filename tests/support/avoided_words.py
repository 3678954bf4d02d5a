"""Words that mark translated text (the style guide's table), counted in code and prose outside quotations."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

PRONOUN = "it|they|this|that|these|those|there|we|what|he|she|nothing|both|only|then|otherwise|such|neither"
AVOIDED = {
    "told": r"\btold\b",
    "behind": r"\bbehind\b",
    "beside": r"\bbeside\b",
    "anew": r"\banew\b",
    "whoever": r"\bwhoever\b|\bwho decides\b",
    "nobody, nothing as a subject": r"\bnobody\b|(?:^|[.:;!?] )nothing\b(?! to\b)",
    "alike": r"\balike\b",
    "alone": r"\balone\b",
    "for as a conjunction": rf"[,;:] for (?:{PRONOUN})\b",
    "as it is": r"\bas (?:it|they) (?:is|are|was|were)\b",
    "mend": r"\bmend(?:s|ed|ing)?\b",
    "cheap, dear": r"\bcheap(?:er|est|ly)?\b|\bdear(?:er|est|ly)?\b",
    "at most so many": r"\bso many\b",
    "go on": r"\b(?:go(?:es|ing|ne)?|went) on\b",
    "hand over, give back": r"\bhand(?:s|ed|ing)? over\b|\bg(?:ive|ives|iven|iving|ave) back\b",
    "stand": r"\bstands?\b(?! for)|\bstood\b|\bstanding\b",
    "fare, come to": r"\bfare[sd]?\b|\bfaring\b|\b(?:comes?|came|coming) to\b",
}
SUFFIXES = {".py", ".md", ".ipynb", ".yaml", ".html", ".toml"}


def words_of(text: str, prose: bool) -> Counter[str]:
    """Count each avoided expression; block quotes, and code in prose, are quotations.

    >>> words_of("def told_apart(): pass  # nobody asks", prose=False).total()
    2
    >>> words_of("Policies are `told`.\\n> told\\n", prose=True).total()
    0
    """
    if prose:
        text = re.sub(r"^> .*$|`[^`\n]*`", "", text, flags=re.MULTILINE)
    text = re.sub(r"\s*\n\s*(?:#:? )?", " ", text).replace("_", " ")
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return Counter({name: len(re.findall(pattern, text, re.IGNORECASE)) for name, pattern in AVOIDED.items()})


def files(places: Iterable[Path]) -> Iterable[Path]:
    """Text files in folders, and files as given."""
    for place in places:
        yield from [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.suffix in SUFFIXES)


def read(path: Path) -> str:
    """Return a file's text; of a notebook, that of its Markdown cells."""
    text = path.read_text()
    if path.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def is_prose(path: Path) -> bool:
    """Return whether code in the file is a quotation."""
    return path.suffix in (".md", ".ipynb")


def count(places: Iterable[Path]) -> Counter[str]:
    """Count over all files of some places."""
    return sum((words_of(read(path), is_prose(path)) for path in files(places)), Counter())


if __name__ == "__main__":
    for path in files(map(Path, sys.argv[1:])):
        if found := +words_of(read(path), is_prose(path)):
            print(path, dict(found))  # noqa: T201
