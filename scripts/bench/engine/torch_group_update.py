"""The PyTorch side of the update of a group: forward, backward, clipping and AdamW, timed one update a line of standard input.

Argument: a folder with config.json, model.safetensors, factors.safetensors and spec.json (threads, sequences, limits, loss, adamW, scale, mode). Whole
sequences, sorted by length, are cut into right-padded batches under the limits, whose gradients add up; only written tokens reach the
head. Smaller batches have less padding and larger products less overhead, so the fastest of several sizes, in eager mode, is used. Prints the first
update's loss, then the milliseconds of each update asked for.
"""
import sys
import time

import torch
from torch_folder import Folder
from torch_decoder import policy_loss

folder = Folder(sys.argv[1])
spec, optimizer = folder.spec, folder.optimizer
total = sum(len(sequence["tokens"]) for sequence in spec["sequences"])


def padded(sequences):
    """Token ids [batch, time], which of them are scored, and of each scored token what the loss takes."""
    texts = [sequence["prompt"] + sequence["tokens"] for sequence in sequences]
    time_steps = max(map(len, texts)) - 1
    ids = torch.zeros((len(texts), time_steps), dtype=torch.long)
    scored = torch.zeros(ids.shape, dtype=torch.bool)
    for row, (sequence, text) in enumerate(zip(sequences, texts)):
        ids[row, : len(text) - 1] = torch.tensor(text[:-1])
        scored[row, len(sequence["prompt"]) - 1 : len(text) - 1] = True
    flat = {
        "labels": torch.tensor([token for sequence in sequences for token in sequence["tokens"]]),
        "oldLogProbs": torch.tensor([value for sequence in sequences for value in sequence["logProbs"]]),
        "advantages": torch.tensor([sequence["advantage"] for sequence in sequences for _ in sequence["tokens"]]),
    }
    flat.update(mask=torch.ones(len(flat["labels"])), referenceLogProbs=torch.zeros(len(flat["labels"])))
    return ids, scored, flat


def batches(rows):
    """By length, at most so many rows and the limits' tokens in one."""
    result = []
    for sequence in sorted(spec["sequences"], key=lambda s: len(s["tokens"])):
        length = len(sequence["prompt"]) + len(sequence["tokens"]) - 1
        fits = result and len(result[-1]) < rows and (len(result[-1]) + 1) * length <= spec["limits"]["tokens"]
        if fits:
            result[-1].append(sequence)
        else:
            result.append([sequence])
    return [padded(batch) for batch in result]


def gradients(parts, compiled=True):
    optimizer.zero_grad(set_to_none=True)
    loss_sum = 0.0
    for ids, scored, flat in parts:
        logits = folder.logits(ids, scored, compiled=compiled)
        loss, _ = policy_loss(logits, flat, spec["loss"])
        loss = loss * (len(flat["labels"]) / total)
        loss.backward()
        loss_sum += loss.item()
    return loss_sum


def update(parts):
    loss = gradients(parts)
    folder.step()
    return loss


def milliseconds(work):
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


options = [batches(min(rows, spec["limits"]["rows"])) for rows in (32, 8, 4, 2)]
gradients(options[-1], compiled=False)
parts = min(options, key=lambda option: milliseconds(lambda: gradients(option, compiled=False)))
print(update(parts), flush=True)
for _ in sys.stdin:
    print(milliseconds(lambda: update(parts)), flush=True)
