"""Where what explains an agent is stored, and its tree as a policy by name."""

from pathlib import Path

from pydantic import ValidationError

from pipeline import storage
from pipeline.core import Policy
from pipeline.errors import UserError
from pipeline.problems.pool.explaining.tree import TreeCard, tree_policy

TREE = "_tree"  # ends the name of an agent's tree


def explain_folder(agent: str) -> Path:
    """Return where an agent is explained."""
    return storage.REPORTS / "explain" / agent


def tree_by_name(name: str) -> Policy:
    """Return the tree `<agent>_tree` as a policy; it keeps to the legal actions.

    Raises:
        UserError: it has not been made, or is no tree.
    """
    agent = name.removesuffix(TREE)
    path, first = explain_folder(agent) / "tree.json", f"run 'python -m pipeline explain --policy models/{agent}' first"
    if not path.is_file():
        raise UserError(f"policy '{name}': {path} is missing: {first}")
    try:
        return tree_policy(TreeCard.model_validate(storage.read_json(path)))
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(str(part) for part in found["loc"])
        raise UserError(f"{path}: not a tree ({where + ': ' if where else ''}{found['msg']}): {first}") from error
