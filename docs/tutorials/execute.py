"""Execute the tutorials' notebooks and store their outputs: `python docs/tutorials/execute.py [NAME ...]`."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent
LONGEST_S = 900  # of a cell, with compilation
QUIET = "ignore:IProgress not found"  # widgets, which no page shows


def execute(path: Path) -> NotebookNode:
    """Return the notebook with new outputs: those of one stream joined, and no times."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=LONGEST_S, record_timing=False, resources={"metadata": {"path": FOLDER}})
    with TemporaryDirectory() as place:
        client.execute(env=os.environ | {"TMPDIR": place, "PYTHONWARNINGS": QUIET})
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    return notebook


def texts(notebook: NotebookNode) -> list[str]:
    """Return the text that each code cell stores; a picture counts by its description."""
    return ["".join(map(_text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return str(output.text)
    return str(output.data.get("text/markdown", output.data.get("text/plain", "")))


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join the parts in which the text of a stream arrives."""
    joined: list[NotebookNode] = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        if path.stem in sys.argv[1:] or not sys.argv[1:]:
            nbformat.write(execute(path), path)
