"""MkDocs hooks: pages generated from the code and the repository root, and links that leave docs/.

The README is the first page. A link to a file outside docs/ leads to a copy of the file in the site.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from pipeline.cli import app
from pipeline.interactive import reference

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
AT_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
HREF = re.compile(r'(href=")((?!https?:)[^"#]+)((?:#[^"]*)?")')
# JupyterLab's scripts (some from the network), its styles and copies of the code: the theme's own suffice.
JUPYTER = re.compile(r'<(script|style|clipboard-copy)\b.*?</\1>|<div class="clipboard-copy-txt".*?</div>', re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and copies of linked files outside docs/."""
    made = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in AT_ROOT.items()}
    made |= {"reference/commands.md": commands(), "reference/params.md": params(), "project/decisions.md": decisions()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    sources = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb"), *(ROOT / source for source in AT_ROOT)]
    linked = {target for source in sources for target in _outside(source)}
    for target in sorted(linked):
        files.append(File.generated(config, f"source/{target}", abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point links that leave docs/ to their place in the site."""
    uri = page.file.src_uri
    source = next((ROOT / root for root, name in AT_ROOT.items() if name == uri), DOCS / uri)

    def moved(link: re.Match[str]) -> str:
        if link[2].startswith(("http:", "https:")):
            return link[0]
        target = Path(os.path.normpath(source.parent / link[2]))
        return f"{link[1]}{os.path.relpath(_in_site(target), Path(uri).parent)}{link[3]}"

    return LINK.sub(moved, markdown)


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Make the theme style a notebook, and point its links to pages."""
    uri = Path(page.file.src_uri)
    if uri.suffix != ".ipynb":
        return html

    def moved(link: re.Match[str]) -> str:
        target = Path(_in_site(Path(os.path.normpath(DOCS / uri.parent / link[2]))))
        shown = target.with_suffix(".html") if target.suffix in (".md", ".ipynb") else target
        return f"{link[1]}{os.path.relpath(shown, uri.parent)}{link[3]}"

    html = HREF.sub(moved, JUPYTER.sub("", html)).replace('<table border="1" class="dataframe">', "<table>")
    return html.replace("highlight-ipynb", "highlight").replace("anchor-link", "headerlink")


def _outside(source: Path) -> Iterator[str]:
    for _, target, _ in LINK.findall(source.read_text(encoding="utf-8")):
        found = Path(os.path.normpath(source.parent / target))
        if found.is_file() and not found.is_relative_to(DOCS) and found.name not in AT_ROOT:
            yield str(found.relative_to(ROOT))


def _in_site(target: Path) -> str:
    if target.is_relative_to(DOCS):
        return str(target.relative_to(DOCS))
    inside = str(target.relative_to(ROOT))
    return AT_ROOT.get(inside, f"source/{inside}")


def decisions() -> str:
    """Return the page with a list of all decisions."""
    lines = [
        f"- [{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}](../decisions/{path.name})"
        for path in sorted((DOCS / "decisions").glob("*.md"))
    ]
    return "\n".join(["# Decisions", "", "Reasons for the design, one short page per decision.", "", *lines]) + "\n"


def commands() -> str:
    """Return the page of all commands and their options."""
    lines = ["# Commands", "", "Every command is `python -m pipeline NAME`, or `deeprm NAME` in the environment.", ""]
    for name, command in _leaves(typer.main.get_command(app), ""):
        lines += [f"## {name}", "", *_paragraphs(command.help or ""), ""]
        rows = [_option(option) for option in command.params if option.name != "help"]
        if rows:
            lines += ["| argument or option | meaning | default |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _leaves(command: TyperCommand | TyperGroup, name: str) -> Iterator[tuple[str, TyperCommand]]:
    if not isinstance(command, TyperGroup):
        yield name, command
        return
    for word in sorted(command.commands):
        yield from _leaves(command.commands[word], f"{name} {word}".strip())


def _paragraphs(text: str) -> list[str]:
    return [re.sub(r"^Example: (.*)$", r"    \1", line.strip()) for line in text.splitlines()]


def _option(option: TyperArgument | TyperOption) -> str:
    argument = isinstance(option, TyperArgument)
    words = [option.metavar or str(option.name).upper()] if argument else [*option.opts, *option.secondary_opts]
    names = ", ".join(f"`{word}`" for word in words)
    default = (
        "required"
        if option.required
        else ""
        if option.default in (None, "") or option.default is False
        else f"`{option.default}`"
    )
    return f"| {names} | {option.help or ''} | {default} |"


def params() -> str:
    """Return the page of all keys of params.yaml."""
    lines = ["# Keys of params.yaml", "", "Each heading is a type of record. `python -m pipeline explain-params PLACE`"]
    lines += [
        "prints the same for a place in your file. An editor that supports the schema in the first line of the file"
    ]
    lines += ["shows it at the cursor ([schema](../params.schema.json)).", ""]
    for name, record in reference.records().items():
        lines += [f"## {name}", "", (record.__doc__ or "").split("\n\n")[0].strip(), ""]
        rows = [
            f"| `{key.name}` | {_escaped(key.means)} | {_escaped(key.may_be)} | {_escaped(key.default)} |"
            for key in reference.keys(record)
        ]
        if rows:
            lines += ["| key | meaning | values | default |", "| --- | --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
