"""The probe reward of `propel serve` for TRL. Needs nothing but Python's standard library.

    from trl_reward import probe_reward
    trainer = GRPOTrainer(model=..., reward_funcs=probe_reward("http://127.0.0.1:8700"), ...)

The server's key comes from PROPEL_REWARD_KEY. Where the server takes several types of task, the data set's column `type`
names each sample's (code_o, code_i, code_f). A sample that could not be judged gets None, which TRL leaves out.
"""

import json
import os
import time
import urllib.error
import urllib.request

ATTEMPTS = 6
TIMEOUT_SECONDS = 180


def probe_reward(url="http://127.0.0.1:8700"):
    """A reward function: completions, as texts or as conversations, to one number or None each."""

    def propel_probe(completions, **columns):
        types = columns.get("type")
        types = [None] * len(completions) if types is None else list(types)
        items = [
            {"completion": _text(completion), **({"type": str(kind)} if kind else {})}
            for completion, kind in zip(completions, types)
        ]
        return _judge(url, items)

    return propel_probe


def _text(completion):
    """A text as it is; of a conversation the contents, which may be None, or lists of parts of which some are text."""
    if isinstance(completion, str):
        return completion
    contents = [message.get("content") or "" for message in completion]
    return "".join(
        content if isinstance(content, str) else "".join(part.get("text") or "" for part in content) for content in contents
    )


def _judge(url, items):
    """Rewards of all items. Those that end in an error are asked for again: they have no reward, and must not be given one."""
    rewards = [None] * len(items)
    missing = list(range(len(items)))
    for attempt in range(ATTEMPTS):
        if not missing:
            break
        if attempt > 0:
            time.sleep(min(30, 2**attempt))
        try:
            judged = _post(url, {"items": [items[i] for i in missing]})["results"]
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise RuntimeError(f"propel serve refuses the request: {error.code} {error.read().decode()[:500]}") from error
            if attempt == ATTEMPTS - 1:
                raise RuntimeError(f"propel serve at {url} does not answer: {error}") from error
            continue
        for i, result in zip(missing, judged):
            rewards[i] = result["reward"]
        missing = [i for i in missing if rewards[i] is None]
    return rewards


def _post(url, body):
    headers = {"Content-Type": "application/json"}
    if os.environ.get("PROPEL_REWARD_KEY"):
        headers["Authorization"] = f"Bearer {os.environ['PROPEL_REWARD_KEY']}"
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/reward", data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)
