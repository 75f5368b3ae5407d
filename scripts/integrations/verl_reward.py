"""The probe reward of `propel serve` for verl. Needs nothing but Python's standard library.

    custom_reward_function.path=scripts/integrations/verl_reward.py
    custom_reward_function.name=compute_score_batch          # with reward_model.reward_manager=batch
    custom_reward_function.name=compute_score                # one sample a call, with the other managers

The server's address comes from PROPEL_REWARD_URL (http://127.0.0.1:8700), its key from PROPEL_REWARD_KEY.
Where the server takes several types of task, a sample's is `extra_info["type"]` (code_o, code_i, code_f).
"""

import json
import os
import time
import urllib.error
import urllib.request

ATTEMPTS = 6
TIMEOUT_SECONDS = 180


def compute_score_batch(data_sources, solution_strs, ground_truths, extra_infos, **_):
    """One dict a sample: `score` is the reward, the rest is logged."""
    # verl hands over NumPy arrays, which have no truth value.
    infos = [None] * len(solution_strs) if extra_infos is None else list(extra_infos)
    items = [
        {"completion": str(solution), **({"type": str(info["type"])} if info and info.get("type") else {})}
        for solution, info in zip(solution_strs, infos)
    ]
    return [
        {"score": result["reward"], "valid": float(result["status"] == "valid"), "band_probability": result["probability"] or 0.0}
        for result in _judge(items)
    ]


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    return compute_score_batch([data_source], [solution_str], [ground_truth], [extra_info])[0]


def _judge(items):
    """Results of all items. Those that end in an error are asked for again: they have no reward, and must not be given one."""
    results = [None] * len(items)
    missing = list(range(len(items)))
    problem = "nothing was asked"
    for attempt in range(ATTEMPTS):
        if not missing:
            return results
        if attempt > 0:
            time.sleep(min(30, 2**attempt))
        try:
            judged = _post({"items": [items[i] for i in missing]})["results"]
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise RuntimeError(f"propel serve refuses the request: {error.code} {error.read().decode()[:500]}") from error
            problem = str(error)
            continue
        for i, result in zip(missing, judged):
            if result["status"] == "error":
                problem = f"{result['outcome']}: {result['detail']}"
            else:
                results[i] = result
        missing = [i for i in missing if results[i] is None]
    if missing:
        raise RuntimeError(f"{len(missing)} of {len(items)} samples have no reward after {ATTEMPTS} attempts: {problem}")
    return results


def _post(body):
    url = os.environ.get("PROPEL_REWARD_URL", "http://127.0.0.1:8700").rstrip("/") + "/v1/reward"
    headers = {"Content-Type": "application/json"}
    if os.environ.get("PROPEL_REWARD_KEY"):
        headers["Authorization"] = f"Bearer {os.environ['PROPEL_REWARD_KEY']}"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)
