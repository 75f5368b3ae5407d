"""The PyTorch side of the update benchmark: forward, backward, clipping and AdamW, timed one update a line of standard input.

Arguments: a folder with config.json, model.safetensors and spec.json (threads, batch, time, ids, labels, loss, adamW, scale, mode); with a scale,
that of the adapter in factors.safetensors, the adapter is trained and the weights are not. Prints the first
update's loss, then the milliseconds of each update asked for.
"""
import sys
import time

import torch
from torch_folder import Folder
from torch_decoder import policy_loss

folder = Folder(sys.argv[1])
spec, optimizer = folder.spec, folder.optimizer
shape = (spec["batch"], spec["time"])
batch = {name: torch.tensor(spec[name]).view(shape) for name in ("ids", "labels")}
batch.update(mask=torch.ones(shape), advantages=torch.ones(shape), referenceLogProbs=torch.zeros(shape))


def update():
    optimizer.zero_grad(set_to_none=True)
    logits = folder.logits(batch["ids"])
    if "oldLogProbs" not in batch:
        log_p = torch.log_softmax(logits.detach(), -1)
        batch["oldLogProbs"] = log_p.gather(-1, batch["labels"][..., None])[..., 0]
    loss, _ = policy_loss(logits, batch, spec["loss"])
    loss.backward()
    folder.step()
    return loss.item()


print(update(), flush=True)
for _ in sys.stdin:
    started = time.perf_counter()
    update()
    print((time.perf_counter() - started) * 1000, flush=True)
