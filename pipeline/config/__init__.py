"""Params: a frozen, checked view of params.yaml, free of torch.

Unknown keys are refused by name, every number has its type and range, and derived sizes are properties. The defaults
live in params.yaml; only `Swf` has some here, because `{name: swf, path: ...}` is all a user must write to read a log.
"""

from pipeline.config.cards import FORMAT, ModelCard, Tensor, Weights, described, difference
from pipeline.config.learning import (
    Agent,
    Clone,
    Cnn,
    Evaluation,
    FinetuneConfig,
    HeuristicKnobs,
    Mlp,
    NetworkConfig,
    NoPretrain,
    PretrainConfig,
    Recipe,
    Reinforce,
)
from pipeline.config.params import PARAMS_FILE, Params, check_params, load_params, repository_root
from pipeline.config.problem import AtOnce, Counts, Demand, Scenario, Streaming, Swf, Synthetic
from pipeline.config.records import Frozen, pick, there_are

__all__ = [
    "FORMAT",
    "PARAMS_FILE",
    "Agent",
    "AtOnce",
    "Clone",
    "Cnn",
    "Counts",
    "Demand",
    "Evaluation",
    "FinetuneConfig",
    "Frozen",
    "HeuristicKnobs",
    "Mlp",
    "ModelCard",
    "NetworkConfig",
    "NoPretrain",
    "Params",
    "PretrainConfig",
    "Recipe",
    "Reinforce",
    "Scenario",
    "Streaming",
    "Swf",
    "Synthetic",
    "Tensor",
    "Weights",
    "check_params",
    "described",
    "difference",
    "load_params",
    "pick",
    "repository_root",
    "there_are",
]
