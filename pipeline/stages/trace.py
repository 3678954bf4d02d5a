"""`trace`: contents of a real cluster's log, as tables and figures."""

from pathlib import Path

import pandas as pd

from pipeline.comparing.plots import png
from pipeline.core import storage
from pipeline.core.logs.registry import read
from pipeline.interactive.logs.figures import figures
from pipeline.interactive.logs.overview import tables
from pipeline.progress import progress, remark, say


def run(path: Path, format: str | None, nodes: Path | None, out: Path | None) -> dict[str, pd.DataFrame]:
    """Write the tables and figures of a log, and return the tables."""
    name = Path(path.name.removesuffix(".gz")).stem
    folder = storage.REPORTS / "trace" / name if out is None else out
    with progress(f"read {path}, percent", 100, brief=True) as advance:
        trace = read(path, format, advance, nodes=nodes)
    for doubt in trace.doubts:
        say(f"warning: {doubt}")
    found = tables(trace)
    frames = {what: frame for what, (frame, _) in found.items()}
    for what, (frame, schema) in found.items():
        storage.write_table(folder / f"{what}.csv", frame, schema)
    for what, figure in figures(name, frames).items():
        storage.write(folder / f"{what}.png", png(figure))
    remark(f"{folder}: {len(trace.id):,} jobs in {len(found)} tables and their figures")
    return frames
