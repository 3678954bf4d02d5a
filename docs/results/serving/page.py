"""Table of ../serving.md, from the data that `measure.py` here wrote."""

import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pandas as pd
from layout import number, table

HERE = Path(__file__).resolve().parent


def _measured() -> ModuleType:
    """Return the module that measured the data; it names the cases."""
    name = "measure_serving"
    spec = util.spec_from_file_location(name, HERE / "measure.py")
    if spec is None or spec.loader is None:
        raise ImportError("serving/measure.py cannot be loaded")
    sys.modules[name] = util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def latency() -> str:
    """Return the duration of answers by case."""
    rows, written = pd.read_csv(HERE / "latency.csv"), []
    for name, case in _measured().CASES.items():
        found = rows[rows["case"] == name]
        took, span = found["milliseconds"], found["second"].max() - found["second"].min()
        written.append(
            [
                case.words,
                f"{found['starts'].mean():.1f}",
                f"{(len(found) - 1) / span:.0f}",
                *(number(value) for value in (took.median(), took.quantile(0.99))),
            ]
        )
    head = ["policy", "jobs started per answer", "answers per second", "p50", "p99"]
    return table(head, written)


TABLES = {"latency": latency}
