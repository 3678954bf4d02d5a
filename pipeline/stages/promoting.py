"""`promote` and `rollback`: move the line of a scenario's champion, and take it back. Git holds what was before."""

from collections.abc import Iterator

from pydantic import TypeAdapter, ValidationError

from pipeline import storage
from pipeline.champions.gate import Verdict
from pipeline.champions.lines import CHAMPIONS, Champion, PolicyRef, champions_in, promoted, rolled_back, with_line
from pipeline.config import Params
from pipeline.errors import UserError
from pipeline.stages.gate import VERDICTS
from pipeline.storage.files import one_line
from pipeline.tracking.digests import measured

READ: TypeAdapter[dict[str, Verdict]] = TypeAdapter(dict[str, Verdict])
AGAIN = "run 'dvc repro gate' first"


def promote(params: Params, scenario: str | None) -> Iterator[str]:
    """Move the line of a scenario, or of all of them, as the gate said; then yield a line on each.

    Raises:
        UserError: nobody passed for the named scenario, or the gate judged other policies than there are now.
    """
    verdicts, text, said = _verdicts(), storage.read_text(CHAMPIONS), list[str]()
    if scenario is not None:
        params.scenario(scenario)
    for name in [scenario] if scenario else [name for name in params.scenarios if name in verdicts]:
        found, line = verdicts.get(name), champions_in(text).get(name)
        if found is None:
            raise UserError(f"{VERDICTS}: no verdict on scenario '{name}': {AGAIN}")
        _must_be_of_now(name, found, line)
        if found.promote is not None:
            text = with_line(text, name, promoted(line, found.promote))
        elif scenario:
            raise UserError(f"{VERDICTS}: {name}: nobody passed the gate: {found.line}")
        said.append(f"{name}: {found.line}")
    storage.write(CHAMPIONS, text.encode())
    yield from said


def rollback(params: Params, scenario: str) -> str:
    """Give a scenario back the champion that it had before, and return a line on it."""
    params.scenario(scenario)
    text = storage.read_text(CHAMPIONS)
    lines = champions_in(text)
    if scenario not in lines:
        raise UserError(f"{CHAMPIONS}: scenario '{scenario}' has no champion to roll back")
    now = rolled_back(lines[scenario], scenario)
    storage.write(CHAMPIONS, with_line(text, scenario, now).encode())
    return f"{scenario}: {now.policy} again; {lines[scenario].policy} as it was is not promoted any more"


def _verdicts() -> dict[str, Verdict]:
    try:
        return READ.validate_python(storage.read_json(VERDICTS))
    except ValidationError as error:
        raise UserError(f"{VERDICTS}: not what the gate writes ({one_line(error)}): {AGAIN}") from error


def _must_be_of_now(scenario: str, found: Verdict, line: Champion | None) -> None:
    """Refuse a verdict against another champion than the line's, or on another model than is here.

    Raises:
        UserError: it is one.
    """
    against, now = (seat.digest if seat else None for seat in (found.champion, line))
    if against != now:
        raise UserError(f"{VERDICTS}: {scenario}: judged against another champion than {CHAMPIONS} has: {AGAIN}")
    if found.promote is not None and not _is_here(found.promote):
        raise UserError(f"{VERDICTS}: {scenario}: {found.promote.policy} has another model now: {AGAIN}")


def _is_here(seat: PolicyRef) -> bool:
    """Return whether a promoted policy is what lies in models/, or data/policies, if anything does."""
    folders = storage.model_folder(seat.policy, "policy"), storage.policy_folder(seat.policy)
    return all(not folder.is_dir() or measured(folder) == seat.digest for folder in folders)
