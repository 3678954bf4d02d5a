"""Train MaskablePPO to schedule one load (about a minute on two cores), then compare it with every heuristic."""

import sys

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecNormalize

import deeprm
from deeprm.sb3 import VecEnv

torch.set_num_threads(1)
task = {"load": 130, "slots": 5}
envs = VecEnv("deeprm/Pool-v0", num_envs=64, **task)
envs.seed(1)
envs = VecNormalize(envs, norm_obs=False)  # rewards only
how = {"n_steps": 64, "batch_size": 1024, "n_epochs": 8, "gae_lambda": 0.9, "ent_coef": 0.005}
network = {"net_arch": [64, 64]}
model = MaskablePPO("MultiInputPolicy", envs, lambda left: 0.004 * left, **how, policy_kwargs=network, seed=1)
model.learn(int(sys.argv[1]) if len(sys.argv) > 1 else 400_000)
print(deeprm.evaluate(model, "deeprm/Pool-v0", name="maskable_ppo", **task).markdown)
