"""What the PyTorch sides of the update benchmarks start from: a folder with config.json, spec.json (threads, adamW, scale …), model.safetensors
and, where an adapter is trained, factors.safetensors."""
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fixtures"))
from torch_decoder import adam_w, decoder, load_tensors  # noqa: E402


class Folder:
    """The model in a folder, with an optimizer of its adapter, or of all its weights where it has none."""

    def __init__(self, path):
        with open(f"{path}/config.json") as file:
            self.config = json.load(file)
        with open(f"{path}/spec.json") as file:
            self.spec = json.load(file)
        torch.set_num_threads(self.spec["threads"])
        self.weights = load_tensors(f"{path}/model.safetensors")
        self.factors = {} if self.spec["scale"] is None else load_tensors(f"{path}/factors.safetensors")
        self.scale = self.spec["scale"] or 1.0
        self.trained = list((self.factors or self.weights).values())
        for tensor in self.trained:
            tensor.requires_grad_(True)
        self.optimizer = adam_w(self.trained, self.spec["adamW"])

        self.dtype = getattr(torch, self.spec["mode"]["dtype"])
        if self.factors and self.dtype != torch.float32:
            # Weights that are not trained need no copy in float32.
            self.weights = {name: tensor.to(self.dtype) for name, tensor in self.weights.items()}
        self.compiled = torch.compile(decoder, dynamic=False) if self.spec["mode"]["compile"] else decoder

    def logits(self, *batch, compiled=True):
        """Mixed precision where the products' type is not float32."""
        run = self.compiled if compiled else decoder
        with torch.autocast("cpu", self.dtype, enabled=self.dtype != torch.float32):
            logits, _ = run(self.config, self.weights, self.factors, self.scale, *batch)
        return logits.float()

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.trained, self.spec["adamW"]["maxNorm"])
        self.optimizer.step()
