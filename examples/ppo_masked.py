"""PPO with action masks in one file, in CleanRL's style: python examples/ppo_masked.py [decisions].

Departures from CleanRL's ppo.py: (1) illegal actions have probability 0; (2) rewards are divided by the running spread
of returns; (3) the vectorized environment begins episodes in the step in which they end, and no truncated state is
bootstrapped, for episodes of Pool end by themselves.
"""

import sys

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import deeprm

LOAD, SLOTS = 130, 5
ENVS, STEPS, EPOCHS, BATCH = 64, 64, 8, 1024
LEARNING_RATE, GAMMA, TRACE, CLIP, ENTROPY, CRITIC = 4e-3, 0.99, 0.9, 0.2, 0.005, 0.5


class Agent(nn.Module):
    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions)
        )
        self.critic = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, seen: torch.Tensor, mask: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        logits = self.actor(seen).masked_fill(~mask, -1e9)
        return Categorical(logits=logits), self.critic(seen)[:, 0]


def flat(seen: dict[str, np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([seen[key] for key in sorted(seen)], axis=1))


def train(decisions: int) -> Agent:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    envs = deeprm.make_vec("deeprm/Pool-v0", ENVS, load=LOAD, slots=SLOTS, autoreset_mode="SameStep").unwrapped
    seen, mask = flat(envs.reset(seed=1)[0]), torch.from_numpy(envs.action_masks())
    agent = Agent(seen.shape[1], mask.shape[1])
    optimizer = torch.optim.Adam(agent.parameters(), eps=1e-5)
    returns, spread = np.zeros(ENVS), []
    updates = decisions // (ENVS * STEPS)
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - update / updates)
        rows = []
        for _ in range(STEPS):
            with torch.no_grad():
                chances, value = agent(seen, mask)
                action = chances.sample()
            after, reward, terminations, truncations, _ = envs.step(action.numpy())
            over = terminations | truncations
            returns = GAMMA * returns * ~over + reward
            spread.append(returns.std())
            scaled = torch.from_numpy(reward / max(np.mean(spread[-1000:]), 1e-6)).float()
            rows.append((seen, mask, action, chances.log_prob(action), value, scaled, torch.from_numpy(over)))
            seen, mask = flat(after), torch.from_numpy(envs.action_masks())
        learn(agent, optimizer, rows, seen, mask)
    return agent


def learn(agent: Agent, optimizer: torch.optim.Optimizer, rows: list, seen: torch.Tensor, mask: torch.Tensor) -> None:
    values, rewards, over = (torch.stack([row[k] for row in rows]) for k in (4, 5, 6))
    with torch.no_grad():
        later = agent(seen, mask)[1]
    advantage, running = torch.zeros_like(values), torch.zeros(ENVS)
    for t in reversed(range(STEPS)):
        goes_on = (~over[t]).float()
        running = rewards[t] + GAMMA * later * goes_on - values[t] + GAMMA * TRACE * goes_on * running
        advantage[t], later = running, values[t]
    target = (advantage + values).ravel()
    about = [torch.cat([row[k] for row in rows]) for k in range(4)]
    for _ in range(EPOCHS):
        for some in torch.randperm(len(target)).split(BATCH):
            views, masks, actions, before = (each[some] for each in about)
            chances, value = agent(views, masks)
            mine = advantage.ravel()[some]
            mine = (mine - mine.mean()) / (mine.std() + 1e-8)
            ratio = (chances.log_prob(actions) - before).exp()
            gain = torch.min(ratio * mine, ratio.clamp(1 - CLIP, 1 + CLIP) * mine).mean()
            loss = CRITIC * (value - target[some]).pow(2).mean() - gain - ENTROPY * chances.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


if __name__ == "__main__":
    trained = train(int(sys.argv[1]) if len(sys.argv) > 1 else 600_000)

    def policy(seen: dict[str, np.ndarray], masks: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return trained(flat(seen), torch.from_numpy(masks))[0].probs.argmax(dim=1).numpy()

    print(deeprm.evaluate(policy, "deeprm/Pool-v0", name="ppo_masked", load=LOAD, slots=SLOTS).markdown)
