"""
The probe reward of `propel serve` for TRL, verl and OpenRLHF. One file, to be copied where the trainer runs; Python's standard library is enough.

TRL 1.16            trl grpo --reward_funcs propel_reward.propel_probe …        or  GRPOTrainer(reward_funcs=ProbeReward(url), …)
verl 0.9            reward.custom_reward_function.path=propel_reward.py
                    reward.custom_reward_function.name=compute_score
                    reward.reward_manager.name=naive                            (or dapo, gdpo; see docs/reward-server.md on rate_limited)
OpenRLHF 0.11       --reward.remote_url propel_reward.py

PROPEL_REWARD_URL       the server's address, http://127.0.0.1:8700 if unset
PROPEL_REWARD_KEY       its key, if it asks for one
PROPEL_REWARD_PATIENCE  seconds that a reward is asked for again, 600 if unset
PROPEL_REWARD_SESSION   the run's name: the server pays for a task once a session; the client's address if unset

Where the server takes several types of task, a sample's (code_o, code_i, code_f) stands in the data set's column `propel_type`: TRL hands it
over as a column, verl within `extra_info`, OpenRLHF as the label (--data.label_key propel_type).

A sample that could not be judged is never given a number of ours: it is asked for again, then TRL gets None, which leaves it out of its
group; to verl and OpenRLHF, which know no such word, it is an error.
"""

import asyncio
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

# Of a request, so that one lost answer costs little, and the server's queue is shared fairly.
ITEMS_PER_REQUEST = 128
TIMEOUT_SECONDS = 180
LONGEST_PAUSE_SECONDS = 30
# Refusals that another try may not meet.
PASSING = (408, 425, 429)
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ProbeReward:
    """
    TRL's reward function. An instance can be pickled and has a name, as the asynchronous trainer and the logs want.
    @param session the run's name, in place of PROPEL_REWARD_SESSION: an evaluation takes one of its own
    @param ends tokens that end a completion: one without any at its end is cut, and then no task
    """

    __name__ = "propel_probe"

    def __init__(self, url=None, patience=None, session=None, ends=None):
        self.url, self.patience, self.session, self.ends = url, patience, session, ends

    def __call__(self, completions, completion_ids=None, propel_type=None, log_extra=None, log_metric=None, **_):
        """One number a completion; None for one that could not be judged. @param completions texts, or conversations"""
        texts = [_said(completion) for completion in completions]
        cut = None
        if self.ends is not None and completion_ids is not None:
            cut = [len(ids) == 0 or int(ids[-1]) not in self.ends for ids in completion_ids]
        results = judge(texts, propel_type, self.url, self.patience, self.session, cut)
        judged = [result for result in results if result is not None]
        if log_extra is not None:
            log_extra("propel_outcome", ["not judged" if result is None else result["outcome"] for result in results])
        if log_metric is not None and judged:
            log_metric("propel/valid", sum(result["status"] == "valid" for result in judged) / len(judged))
            log_metric("propel/repeat", sum(result["outcome"] == "repeat" for result in judged) / len(judged))
            log_metric("propel/band_probability", sum(result["probability"] or 0.0 for result in judged) / len(judged))
            log_metric("propel/not_judged", len(results) - len(judged))
        return [None if result is None else float(result["reward"]) for result in results]


propel_probe = ProbeReward()


async def compute_score(data_source, solution_str, ground_truth=None, extra_info=None, url=None, patience=None, session=None, **_):
    """verl's score of one sample. The same keys every time: `score` is the reward, the others are logged. @raise RuntimeError without a reward"""
    kind = None if extra_info is None else extra_info.get("propel_type")
    [result] = await asyncio.to_thread(judge, [str(solution_str)], [kind], url, patience, session)
    if result is None:
        raise RuntimeError("propel: the sample has no reward; what the server says of it stands above")
    return {
        "score": float(result["reward"]),
        "valid": float(result["status"] == "valid"),
        "repeat": float(result["outcome"] == "repeat"),
        "band_probability": float(result["probability"] or 0.0),
    }


def reward_func(queries, prompts, labels):
    """OpenRLHF's rewards of whole samples, which begin with their prompts. @raise RuntimeError without a reward"""
    import torch

    answers = []
    for first in range(0, len(queries), ITEMS_PER_REQUEST):
        part = slice(first, first + ITEMS_PER_REQUEST)
        body = {"query": list(queries[part]), "prompts": list(prompts[part]), "labels": list(labels[part])}
        name = str(uuid.uuid4())
        answers.append(_patiently(lambda: _whole(_post("/get_reward", body, name), "rewards", len(body["query"]))))
    joined = lambda of: torch.tensor([value for answer in answers for value in of(answer)], dtype=torch.float32)
    names = answers[0]["extra_logs"] if answers else ()
    return {
        "rewards": joined(lambda answer: answer["rewards"]),
        "scores": joined(lambda answer: answer["scores"]),
        "extra_logs": {name: joined(lambda answer: answer["extra_logs"][name]) for name in names},
    }


def judge(completions, types=None, url=None, patience=None, session=None, cut=None):
    """
    The server's results of texts, in their order: {status: valid | invalid, reward, outcome, detail, logits, probability}; None for one that it
    could not judge in all the time there was. @param cut of each whether it has no end @raise RuntimeError when it refuses the request, or was
    never reached
    """
    types = [None] * len(completions) if types is None else list(types)
    cut = [False] * len(completions) if cut is None else list(cut)
    items = [
        {"completion": text, **({"type": str(kind)} if kind is not None and kind != "" else {}), **({"cut": True} if is_cut else {})}
        for text, kind, is_cut in zip(completions, types, cut, strict=True)
    ]
    results = [None] * len(items)
    for first in range(0, len(items), ITEMS_PER_REQUEST):
        missing = list(range(first, min(first + ITEMS_PER_REQUEST, len(items))))
        said = {}
        # Of these items: sent again after a lost answer they are no repeats of themselves.
        name = str(uuid.uuid4())

        def ask():
            nonlocal name
            body = {"items": [items[i] for i in missing]}
            answer = _whole(_post("/v1/reward", body, name, url, session), "results", len(missing))
            name = str(uuid.uuid4())
            for i, result in zip(list(missing), answer["results"]):
                if result["status"] == "error":
                    said[i] = f"{result['outcome']}: {result['detail']}"
                else:
                    results[i] = result
                    missing.remove(i)
            if missing:
                raise _NotYet(f"{len(missing)} samples have no reward, the first by {said[missing[0]]}")

        try:
            _patiently(ask, patience)
        except RuntimeError as error:
            if not isinstance(error.__cause__, _NotYet):
                raise
            for i in missing:
                print(f"propel: a sample has no reward: {said[i]}: {completions[i][:200]!r}", file=sys.stderr)
    return results


class _NotYet(Exception):
    """Worth another try. `pause` is what the server asks for, in seconds."""

    def __init__(self, what, pause=None):
        super().__init__(what)
        self.pause = pause


def _patiently(ask, patience=None):
    """Ask until it is answered, with pauses that grow. @raise RuntimeError, caused by the last trouble"""
    patience = float(os.environ.get("PROPEL_REWARD_PATIENCE", 600)) if patience is None else patience
    end, pause, tries = time.monotonic() + patience, 1.0, 0
    while True:
        tries += 1
        try:
            return ask()
        except _NotYet as trouble:
            wait = trouble.pause if trouble.pause is not None else pause * random.uniform(0.75, 1.25)
            if time.monotonic() + wait > end:
                raise RuntimeError(f"propel: no reward after {tries} tries in {patience:.0f} s: {trouble}") from trouble
            if tries == 1:
                print(f"propel: {trouble}; asking again for {patience:.0f} s", file=sys.stderr)
        time.sleep(wait)
        pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)


def _post(path, body, name, url=None, session=None):
    """@raise _NotYet for what may pass, RuntimeError for a refusal"""
    url = (url or os.environ.get("PROPEL_REWARD_URL") or "http://127.0.0.1:8700").rstrip("/")
    key = os.environ.get("PROPEL_REWARD_KEY")
    session = session or os.environ.get("PROPEL_REWARD_SESSION")
    headers = {"Content-Type": "application/json", "Idempotency-Key": name}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if session:
        headers["X-Propel-Session"] = session
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    # A proxy that the environment names cannot reach this machine's own loopback.
    is_here = urllib.parse.urlsplit(url).hostname in LOOPBACK
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if is_here else []))
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        what = f"{url}{path} answers {error.code}: {_read(error)}"
        if error.code < 500 and error.code not in PASSING:
            raise RuntimeError(f"propel: {what}") from error
        raise _NotYet(what, _seconds(error.headers.get("Retry-After"))) from error
    except ValueError as error:
        raise _NotYet(f"{url}{path} sends an answer that is cut: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _NotYet(f"{url}{path} does not answer: {error!r}") from error


def _whole(answer, field, length):
    """@raise _NotYet for an answer that is not one to this request"""
    values = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(values, list) or len(values) != length:
        raise _NotYet(f"an answer without {length} {field}")
    return answer


def _read(error):
    try:
        return error.read(500).decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return ""


def _seconds(text):
    try:
        return min(LONGEST_PAUSE_SECONDS, max(0.0, float(text)))
    except (TypeError, ValueError):
        return None


def _said(completion):
    """A text as it is; of a conversation what the assistant said last, where a content may be missing or a list of parts."""
    if isinstance(completion, str):
        return completion
    turns = [message.get("content") for message in completion if message.get("role", "assistant") == "assistant"]
    last = (turns[-1] if turns else None) or ""
    return last if isinstance(last, str) else "".join(part.get("text") or "" for part in last)
