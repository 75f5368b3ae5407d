"""
The probe reward of `propel serve` as a taskset of verifiers 0.4; propel_reward.py must lie beside it, and says how the server is found.

    vf-eval propel_verifiers …      prompts by `prompts`, a type a prompt by `propel_types`
"""

import asyncio
import os
import sys

import verifiers.v1 as vf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from propel_reward import judge  # noqa: E402


class ProbeTaskData(vf.TaskData):
    propel_type: str | None = None


class ProbeTask(vf.Task[ProbeTaskData]):
    @vf.reward
    async def propel(self, trace: vf.Trace) -> float:
        [result] = await asyncio.to_thread(judge, [trace.last_reply or ""], [self.data.propel_type], cut=[_is_cut(trace)])
        if result is None:
            raise RuntimeError("propel: the sample has no reward; what the server says of it stands above")
        trace.record_metrics({
            "valid": float(result["status"] == "valid"),
            "repeat": float(result["outcome"] == "repeat"),
            "band_probability": result["probability"] or 0.0,
        })
        trace.info["propel_outcome"] = result["outcome"]
        return float(result["reward"])


def _is_cut(trace):
    answered = [call for call in trace.calls if call.error is None]
    return bool(answered) and answered[-1].finish_reason == "length"


class ProbeConfig(vf.TasksetConfig):
    prompts: list[str] = ["# output\n"]
    propel_types: list[str] = []
    num_tasks: int = 8


class ProbeTaskset(vf.Taskset[ProbeTask, ProbeConfig]):
    def load(self):
        kinds = self.config.propel_types or [None]
        for i in range(self.config.num_tasks):
            prompt = self.config.prompts[i % len(self.config.prompts)]
            data = ProbeTaskData(prompt=prompt, name=f"propel-{i}", propel_type=kinds[i % len(kinds)])
            yield ProbeTask(data, self.config.task)


__all__ = ["ProbeTaskset"]
