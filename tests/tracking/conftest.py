"""An empty repository of its own for each test, with a database whose tables are ready."""

import contextlib
import logging
import shutil
import sqlite3
from pathlib import Path

import pytest
from laid_out import LaidOut
from mlflow import MlflowClient
from once import once
from tracking_records import FOREIGN, REPOSITORY

from pipeline.core.config import Params, load_params


@pytest.fixture(scope="session")
def params() -> Params:
    return load_params(REPOSITORY / "params.yaml")


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Setting tables up takes seconds; a copy takes none."""

    def make(place: Path) -> str:
        MlflowClient(f"sqlite:///{place / 'mlflow.db'}")
        with sqlite3.connect(place / "mlflow.db") as ready:
            assert ready.execute("SELECT count(*) FROM runs").fetchone() == (0,)
        return ""

    return once(tmp_path_factory, "database", make)[0] / "mlflow.db"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository without git, DVC or a database; the working directory."""
    logging.getLogger("mlflow").setLevel(logging.CRITICAL)  # as in a stage, which sets it before the first import
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIPELINE_TRACKING", "live")  # but for the tests of when a record is sent
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    shutil.copy(REPOSITORY / "params.yaml", tmp_path)
    return tmp_path


@pytest.fixture
def root(bare: Path, database: Path) -> Path:
    """A repository with a database."""
    shutil.copy(database, bare / "mlflow.db")
    return bare


@pytest.fixture(scope="session")
def laid_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Laying outputs out takes a good part of a second, most of it YAML; a copy takes none."""

    def make(place: Path) -> str:
        (place / "root").mkdir()
        shutil.copy(REPOSITORY / "params.yaml", place / "root")
        with contextlib.chdir(place / "root"):
            LaidOut(place / "root").lay_out()
        return ""

    return once(tmp_path_factory, "laid", make)[0] / "root"


@pytest.fixture
def laid(root: Path, laid_once: Path) -> LaidOut:
    """A repository in which the pipeline seems to have run, and a database that knows nothing of it."""
    shutil.copytree(laid_once, root, symlinks=True, dirs_exist_ok=True)
    return LaidOut(root)
