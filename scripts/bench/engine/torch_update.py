"""The PyTorch side of the update benchmark: eager forward, backward, clipping and AdamW, timed one update a line of standard input.

Arguments: a folder with config.json, model.safetensors and spec.json (threads, batch, time, ids, labels, loss, adamW, scale); with a scale,
that of the adapter in factors.safetensors, the adapter is trained and the weights are not. Prints the first
update's loss, then the milliseconds of each update asked for.
"""
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fixtures"))
from torch_decoder import adam_w, decoder, load_tensors, policy_loss  # noqa: E402

folder = sys.argv[1]
with open(f"{folder}/config.json") as file:
    config = json.load(file)
with open(f"{folder}/spec.json") as file:
    spec = json.load(file)
torch.set_num_threads(spec["threads"])
shape = (spec["batch"], spec["time"])
weights = load_tensors(f"{folder}/model.safetensors")
factors = {} if spec["scale"] is None else load_tensors(f"{folder}/factors.safetensors")
scale = spec["scale"] or 1.0
trained = list((factors or weights).values())
for tensor in trained:
    tensor.requires_grad_(True)
batch = {name: torch.tensor(spec[name]).view(shape) for name in ("ids", "labels")}
batch.update(mask=torch.ones(shape), advantages=torch.ones(shape), referenceLogProbs=torch.zeros(shape))
optimizer = adam_w(trained, spec["adamW"])


def update():
    optimizer.zero_grad(set_to_none=True)
    logits, _ = decoder(config, weights, factors, scale, batch["ids"])
    if "oldLogProbs" not in batch:
        log_p = torch.log_softmax(logits.detach(), -1)
        batch["oldLogProbs"] = log_p.gather(-1, batch["labels"][..., None])[..., 0]
    loss, _ = policy_loss(logits, batch, spec["loss"])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, spec["adamW"]["maxNorm"])
    optimizer.step()
    return loss.item()


print(update(), flush=True)
for _ in sys.stdin:
    started = time.perf_counter()
    update()
    print((time.perf_counter() - started) * 1000, flush=True)
