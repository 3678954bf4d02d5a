"""Tables of ../gate.md, from reports/gate.csv and the data that `measure.py` here and in ../watch wrote."""

import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pandas as pd
from layout import table

HERE = Path(__file__).resolve().parent
VERDICTS = HERE.parents[2] / "reports" / "gate.csv"


def _measured(folder: str) -> ModuleType:
    """Return the module that measured the data; it names the cases."""
    name = f"measure_{folder}"
    spec = util.spec_from_file_location(name, HERE.parent / folder / "measure.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder}/measure.py cannot be loaded")
    sys.modules[name] = util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def promoted() -> str:
    """Return the share of promoted candidates of known quality, and the rules that refuse the others."""
    rows, written = pd.read_csv(HERE / "promoted.csv", keep_default_na=False), []
    for name, case in _measured("gate").CASES.items():
        found = rows[rows["case"] == name]
        refused = sorted({rule for said in found["refused"] for rule in said.split(", ") if rule})
        written.append([case.words, ", ".join(refused) or "none", f"{found['promoted'].sum()} of {len(found)}"])
    return table(["the candidate is", "refused by [rules](#the-gates-verdicts-today)", "promoted"], written, words=2)


def seen() -> str:
    """Return the share of alarms, and the number of windows from a change to half and to 90 % of the alarms."""
    rows, written = pd.read_csv(HERE.parent / "watch" / "seen.csv"), []
    for name, case in _measured("watch").CASES.items():
        found = rows.loc[rows["case"] == name, "seen"]
        alarms = found[found > 0]
        delays = [f"{alarms.quantile(part) - case.change:.0f}" for part in (0.5, 0.9)] if len(alarms) else ["", ""]
        written.append([case.words, f"{len(alarms)} of {len(found)}", *delays])
    return table(["the champion is", "alarms", "windows until the alarm, median", "9 of 10 within"], written)


def today() -> str:
    """Return the gate's verdict on every candidate of the default run, with the rules that refuse it."""
    rows, written = pd.read_csv(VERDICTS, dtype={"load": str}), []
    for (scenario, champion, name), part in rows.groupby(["scenario", "champion", "candidate"], sort=False):
        over = part.loc[part["rule"] == "better", "difference"].iloc[0]
        failed = part.loc[~part["passed"], "rule"].unique()
        words = f"refused: {', '.join(failed)}" if len(failed) else "passed"
        written.append([scenario, champion, name, f"{100 * over:+.1f} %", words])
    head = ["scenario", "judged against", "candidate", "difference over all loads", "verdict"]
    return table(head, written, words=5)


def verdict(rows: pd.DataFrame) -> str:
    """Return the gate's verdict on one candidate: passed, or the rules that refuse it."""
    failed = rows[~rows["passed"]]
    loads = [f"{int(load)} %" for load in failed.loc[failed["rule"] == "load", "load"]]
    rules = [f"load ({', '.join(loads)})" if rule == "load" else rule for rule in failed["rule"].unique()]
    return f"refused: {', '.join(rules)}" if rules else "passed"


TABLES = {"today": today, "promoted": promoted, "seen": seen}
