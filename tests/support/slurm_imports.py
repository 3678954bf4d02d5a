"""Imports of dumps: of those in tests/data/slurm, and of some written for a test."""

from pathlib import Path
from typing import Any

import pandas as pd
from builders import REPOSITORY

from pipeline.accounting.slurm_import import run

DUMPS = REPOSITORY / "tests" / "data" / "slurm"


class Imported:
    """A folder into which dumps are imported, and the tables read back from it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.said = folder, folder / "out", list[str]()

    def dump(self, text: str, name: str = "dump.txt") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *files: Path, **how: Any) -> pd.DataFrame:
        """Import files and return the jobs by name."""
        _, self.said = run(files, **({"out": self.out} | how))
        return self.table("jobs.csv").set_index("job")

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.out / name, dtype={"job": str})

    def counts(self, what: str) -> dict[str, int]:
        rows = self.table("account.csv").query("what == @what")
        return dict(zip(rows["why"], rows["rows"], strict=True))

    def swf(self) -> pd.DataFrame:
        """The log's fields by number; rows are named like the jobs of the table."""
        frame = pd.read_csv(self.out / "log.swf", sep=" ", comment=";", header=None)
        frame.columns = range(1, 19)
        return frame.set_index(self.table("jobs.csv")["job"])

    def header(self, word: str) -> str:
        lines = (self.out / "log.swf").read_text().splitlines()
        return next(line for line in lines if line.startswith(f"; {word}: ")).split(": ", 1)[1]
