"""`export`: a trained network as an ONNX file, which runs without this project."""

from pathlib import Path

from pipeline.core import storage
from pipeline.core.storage.files import check_out
from pipeline.errors import UserError
from pipeline.problems import PROBLEMS, problem
from pipeline.progress import remark


def run(folder: Path, out: Path) -> dict[str, str | int]:
    """Write the network of a model's folder as an ONNX file; return its name and size."""
    check_out(out, [".onnx"])
    word = storage.problem_of_model(folder)
    if word not in PROBLEMS:
        raise UserError(f"{folder}: expected a model of {', '.join(PROBLEMS)}, found one of '{word}'")
    try:
        content = problem(word).export(folder)
    except ModuleNotFoundError as error:
        raise UserError(f"export needs {error.name}: pip install 'deeprm-pipeline[onnx]'") from error
    storage.write(out, content)
    remark(f"{out}: {len(content):,} bytes, from {folder}")
    return {"file": str(out), "bytes": len(content), "model": str(folder)}
