"""Real trainers with the reward of a running `propel serve`: trainers.py PART URL FOLDER_OF_CLIENTS MODEL PROMPTS.jsonl [STEPS BATCH GROUP RATE]; figures as one line of JSON."""

import asyncio
import json
import os
import sys
import time

part, url, clients, model, prompts_file, *grpo = sys.argv[1:]
os.environ["PROPEL_REWARD_URL"] = url
sys.path.insert(0, clients)
TASKS = ["def f(x):\n    return x[::-1] + x\n>>> f([1, 2, 3])\n", "def f(x):\n    return"]


def prompts():
    with open(prompts_file) as file:
        return [json.loads(line) for line in file]


def trl():
    """Steps of GRPO on a generator of the project's, by the reward as its documentation names it; the adapter stands in `adapter`."""
    steps, batch, group, rate = grpo
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    import propel_reward

    repeats(propel_reward.ProbeReward)
    rows = prompts()
    args = GRPOConfig(
        output_dir="trl", max_steps=int(steps), per_device_train_batch_size=int(batch), num_generations=int(group), learning_rate=float(rate),
        lr_scheduler_type="constant", beta=0.02, max_completion_length=60, temperature=1.0, top_k=0, use_cpu=True, report_to=[],
        save_strategy="no", logging_steps=1, seed=1, bf16=False, disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=model, reward_funcs=propel_reward.propel_probe, args=args, train_dataset=Dataset.from_list(rows),
        processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
        peft_config=LoraConfig(r=8, lora_alpha=16, target_modules="all-linear"),
    )
    began = time.monotonic()
    trainer.train()
    seconds = round(time.monotonic() - began, 1)
    trainer.save_model("adapter")
    log = [row for row in trainer.state.log_history if "reward" in row]
    assert "propel/valid" in log[-1], f"no propel/valid among {sorted(log[-1])}"
    names = {"reward": "reward", "valid": "propel/valid", "repeats": "propel/repeat"}
    figures = {f"{name} {when}": round(row[key], 3) for name, key in names.items() for when, row in (("first", log[0]), ("last", log[-1]))}
    return {"steps": len(log), **figures, "seconds": seconds}


def repeats(reward):
    """A task is paid for once a session, in one batch and in the next, and the trainer's log says so."""
    said = {}
    first = reward(session="repeats")(completions=[TASKS[0]] * 2, log_metric=said.__setitem__)
    again = reward(session="repeats")(completions=TASKS[:1])
    other = reward(session="others")(completions=TASKS[:1])
    assert first[0] > -3 and first[1] == -3 and again == [-3] and abs(other[0] - first[0]) < 1e-3, (first, again, other)
    assert said["propel/repeat"] == 0.5 and said["propel/valid"] == 0.5, said


def verl():
    """verl's own loader of reward functions and its default reward manager."""
    import torch
    from omegaconf import OmegaConf
    from tensordict import TensorDict
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
    from verl.trainer.ppo.reward import get_custom_reward_fn

    config = OmegaConf.create({
        "reward": {"custom_reward_function": {"path": os.path.join(clients, "propel_reward.py"), "name": "compute_score", "reward_kwargs": {"url": url}}}
    })
    compute_score = get_custom_reward_fn(config)

    class Letters:
        def decode(self, ids, skip_special_tokens):
            return bytes(ids.tolist()).decode()

    async def score(text):
        import numpy as np

        ids = torch.tensor([list(text.encode())])
        batch = TensorDict({"responses": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1)
        columns = {"data_source": "propel", "reward_model": {"ground_truth": ""}, "extra_info": {"propel_type": "code_o"}}
        data = DataProto(batch=batch, non_tensor_batch={name: np.array([value], dtype=object) for name, value in columns.items()})
        manager = get_reward_manager_cls("naive")(config, Letters(), compute_score)
        return await manager.run_single(data)

    async def scores():
        return [await score(text) for text in TASKS]

    valid, invalid = asyncio.run(scores())
    assert invalid["reward_score"] == -3 and valid["reward_score"] > -3, (valid, invalid)
    assert set(valid["reward_extra_info"]) == set(invalid["reward_extra_info"]) == {"score", "valid", "repeat", "band_probability"}
    return {"manager": "naive", "valid task": round(valid["reward_score"], 3), "invalid task": invalid["reward_score"]}


def openrlhf():
    """OpenRLHF's own executor, by the file and by the route."""
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    file = SingleTurnAgentExecutor(os.path.join(clients, "propel_reward.py"))
    # In a session of its own, since a task is paid for once a session.
    route = SingleTurnAgentExecutor(url + "/get_reward?session=route")
    ask = ["ask:" + text for text in TASKS], ["ask:"] * len(TASKS), ["code_o"] * len(TASKS)
    by_file = [float(row["rewards"][0]) for row in asyncio.run(file._fetch_rewards_via_func(*ask))]
    by_route = asyncio.run(route._fetch_rewards_via_http(*ask))[0]["rewards"]
    again = asyncio.run(route._fetch_rewards_via_http(*ask))[0]["rewards"]
    assert all(abs(a - b) < 1e-3 for a, b in zip(by_file, by_route)) and by_file[1] == -3, (by_file, by_route)
    assert by_file[0] > -3 and again == [-3, -3], again
    return {"by the file": round(by_file[0], 3), "by the route": round(by_route[0], 3), "invalid task": by_file[1]}


def verifiers():
    """The taskset's tasks, each scored as verifiers scores a trace."""
    import propel_verifiers

    from types import SimpleNamespace

    taskset = propel_verifiers.ProbeTaskset(propel_verifiers.ProbeConfig(num_tasks=len(TASKS), propel_types=["code_o"]))
    rewards, metrics = [], []
    for task, text in zip(taskset.load(), TASKS):
        trace = SimpleNamespace(last_reply=text, calls=[], info={}, record_metrics=metrics.append)
        rewards.append(asyncio.run(task.propel(trace)))
    assert rewards[1] == -3 and rewards[0] > -3 and [m["valid"] for m in metrics] == [1, 0], (rewards, metrics)
    return {"valid task": round(rewards[0], 3), "invalid task": rewards[1]}


print(json.dumps({"trl": trl, "verl": verl, "openrlhf": openrlhf, "verifiers": verifiers}[part]()))
