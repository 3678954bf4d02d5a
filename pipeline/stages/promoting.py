"""`promote` and `rollback`: change the line of a scenario's champion in champions.yaml; git keeps its history."""

from pydantic import TypeAdapter, ValidationError

from pipeline.champions.gate import Verdict
from pipeline.champions.lines import CHAMPIONS, Champion, champions_in, promoted, rolled_back, with_line
from pipeline.core import storage
from pipeline.core.config import Params
from pipeline.core.storage.files import one_line
from pipeline.errors import UserError
from pipeline.stages.gate import VERDICTS, read_advice
from pipeline.tracking.digests import measured

READ: TypeAdapter[dict[str, Verdict]] = TypeAdapter(dict[str, Verdict])
AGAIN = "run 'dvc repro gate' first"


def promote(params: Params, scenario: str | None) -> dict[str, Verdict]:
    """Apply the gate's verdict on one scenario or on all, and return what was applied."""
    try:
        verdicts = READ.validate_python(storage.read_json(VERDICTS))
    except ValidationError as error:
        raise UserError(f"{VERDICTS}: not what the gate writes ({one_line(error)}): {AGAIN}") from error
    text, applied = storage.read_text(CHAMPIONS), dict[str, Verdict]()
    if scenario is not None:
        params.scenario(scenario)
    for name in [scenario] if scenario else [name for name in params.scenarios if name in verdicts]:
        found, line = verdicts.get(name), champions_in(text).get(name)
        if found is None:
            raise UserError(f"{VERDICTS}: no verdict on scenario '{name}': {AGAIN}")
        _check_current(name, found, line)
        if found.advice != (advice.line if (advice := read_advice(params, name)) else ""):
            raise UserError(f"{VERDICTS}: {name}: judged by other advice than there is now: {AGAIN}")
        if found.promote is not None:
            text = with_line(text, name, promoted(line, found.promote))
        elif scenario:
            raise UserError(f"{VERDICTS}: {name}: no candidate passed the gate: {found.line}")
        applied[name] = found
    storage.write(CHAMPIONS, text.encode())
    return applied


def rollback(params: Params, scenario: str) -> tuple[dict[str, str], str]:
    """Restore a scenario's previous champion; return both champions, and a line on them."""
    params.scenario(scenario)
    text = storage.read_text(CHAMPIONS)
    lines = champions_in(text)
    if scenario not in lines:
        raise UserError(f"{CHAMPIONS}: scenario '{scenario}' has no champion to roll back")
    now = rolled_back(lines[scenario], scenario)
    storage.write(CHAMPIONS, with_line(text, scenario, now).encode())
    found = {"scenario": scenario, "champion": now.policy, "before": lines[scenario].policy}
    return found, f"{scenario}: {now.policy} restored; {found['before']} will not be promoted again"


def _check_current(scenario: str, found: Verdict, line: Champion | None) -> None:
    """Refuse a verdict on a champion other than that of the line, or on a model other than the present one."""
    against, now = (seat.digest if seat else None for seat in (found.champion, line))
    if against != now:
        raise UserError(f"{VERDICTS}: {scenario}: judged against another champion than {CHAMPIONS} has: {AGAIN}")
    if (seat := found.promote) is not None:
        folders = storage.model_folder(seat.policy, "policy"), storage.policy_folder(seat.policy)
        if any(folder.is_dir() and measured(folder) != seat.digest for folder in folders):
            raise UserError(f"{VERDICTS}: {scenario}: {seat.policy} has another model now: {AGAIN}")
