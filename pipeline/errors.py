"""The exception for users' mistakes; the command line prints it as a single line."""

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {  # extras of pyproject.toml and their packages; a message names the first one with the missing package
    "plots": ("matplotlib",),
    "learn": ("torch", "sklearn", "threadpoolctl", "ortools", "matplotlib"),
    "ops": (
        *("dvc", "mlflow", "sqlalchemy", "pathspec", "filelock", "jinja2"),
        *("fastapi", "starlette", "uvicorn", "urllib3", "prometheus_client"),
    ),
    "sb3": ("stable_baselines3", "sb3_contrib"),
    "onnx": ("onnx", "onnxruntime", "onnxscript"),
    "ray": ("ray",),
}


class UserError(Exception):
    """A mistake that the user can correct; the message says where it is, what was expected and what was found."""


class TooShortError(UserError):
    """A period of a log is shorter than one window."""


@contextmanager
def missing_packages_named() -> Iterator[None]:
    """Turn the failed import of a package into one line that says how to install the package.

    Raises:
        UserError: a package is not installed; a missing module of our own stays a ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "pipeline", "deeprm"):
            raise
        extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
        wanted = f"'deeprm-pipeline[{extra}]'" if extra else "deeprm-pipeline"
        raise UserError(
            f"needs {error.name}: pip install {wanted}; in a clone 'make setup', then 'source .venv/bin/activate'"
        ) from None
