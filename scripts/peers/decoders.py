"""
Tiny random decoders with odd configurations, and transformers' logits of them.
    decoders.py make FOLDER COUNT SEED      FOLDER/case-N: config.json, model.safetensors, changes.json
    decoders.py adapters FOLDER COUNT SEED  FOLDER/case-N/{base,adapter} and logits.bin: PEFT's adapters with odd settings, and the logits with them
    decoders.py again FOLDER                reads FOLDER/case-N/again by PEFT; one line of JSON: how far its logits are from logits.bin, and gradients.safetensors of
                                            the mean log-probability of each next token, by the factors
    decoders.py logits FOLDER ASKED.json    ASKED: {case: length}; logits.bin in each, float32 [1, length, vocabulary]; one line of JSON
"""

import json
import math
import os
import random
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

logging.set_verbosity_error()
VOCABULARY, POSITIONS, ORIGINAL, TOKENS, HEADS, WIDTH = 64, 64, 16, 40, 4, 32
FAMILIES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "phi3": "Phi3ForCausalLM", "gemma3_text": "Gemma3ForCausalLM"}
MISSING = object()


def ids(length):
    draw = random.Random(7)
    return torch.tensor([[draw.randrange(VOCABULARY) for _ in range(TOKENS)][:length]])


def factors(draw, half):
    return [round(draw.uniform(0.8, 4), 3) for _ in range(half)]


def scaling(draw, half):
    """A scaling as people's files have them: every kind, its fields present or not."""
    name = draw.choice(["type", "rope_type"])
    kind = draw.choice(["linear", "dynamic", "yarn", "llama3", "longrope", "default", "su"])
    fields = {name: kind}
    maybe = lambda key, value, chance=0.5: fields.update({key: value}) if draw.random() < chance else None
    if kind in ("linear", "dynamic", "yarn", "llama3"):
        fields["factor"] = draw.choice([2.0, 4.0])
    if kind == "llama3":
        fields.update(low_freq_factor=1.0, high_freq_factor=4.0)
    if kind in ("longrope", "su"):
        fields.update(short_factor=factors(draw, half), long_factor=factors(draw, half))
        maybe("factor", draw.choice([2.0, 8.0]))
        maybe("attention_factor", 1.3, 0.3)
    if kind == "yarn":
        maybe("attention_factor", 1.2, 0.3)
        maybe("beta_fast", 16, 0.3)
        maybe("beta_slow", 2, 0.3)
        maybe("mscale", 0.7, 0.2)
        maybe("mscale_all_dim", 0.9, 0.2)
        maybe("truncate", False, 0.2)
    if kind not in ("linear", "default"):
        maybe("original_max_position_embeddings", ORIGINAL, 0.7)
    maybe("rope_theta", 777.0, 0.25)
    return fields


# A change of a configuration: what is set, where the family has a say.
CHANGES = {
    "tied": lambda c, d: c.update(tie_word_embeddings=True),
    "tie unsaid": lambda c, d: c.pop("tie_word_embeddings", None),
    "attention_bias": lambda c, d: c.update(attention_bias=d.choice([True, False, None])),
    "mlp_bias": lambda c, d: c.update(mlp_bias=d.choice([True, False])),
    "hidden_act": lambda c, d: c.update(hidden_act=d.choice(["silu", "swish", "gelu", "gelu_pytorch_tanh", "relu"])),
    "no hidden_act": lambda c, d: c.pop("hidden_act", None),
    "head_dim": lambda c, d: c.update(head_dim=d.choice([16, 8, None])),
    "kv heads": lambda c, d: c.update(num_key_value_heads=d.choice([1, 2, 4, None])),
    "no kv heads": lambda c, d: c.pop("num_key_value_heads", None),
    "epsilon": lambda c, d: c.update(rms_norm_eps=d.choice([1e-2, 1e-5])),
    "no epsilon": lambda c, d: c.pop("rms_norm_eps", None),
    "rope_theta": lambda c, d: c.update(rope_theta=d.choice([100.0, 1e6])),
    "no rope_theta": lambda c, d: c.pop("rope_theta", None),
    "rope_parameters": lambda c, d: c.update(rope_parameters={"rope_type": "default", "rope_theta": d.choice([50.0, 5e5])}),
    "rope_scaling": lambda c, d: c.update(rope_scaling=scaling(d, half(c))),
    "rope_scaling again": lambda c, d: c.update(rope_scaling=scaling(d, half(c))),
    "rope_parameters scaled": lambda c, d: c.update(rope_parameters={"rope_theta": 300.0, **scaling(d, half(c))}),
    "original positions": lambda c, d: c.update(original_max_position_embeddings=d.choice([ORIGINAL, 2 * ORIGINAL])),
    "partial_rotary_factor": lambda c, d: c.update(partial_rotary_factor=d.choice([0.5, 1.0])),
    "partial within": lambda c, d: c.update(rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
    "sliding_window": lambda c, d: c.update(sliding_window=d.choice([4, 16, None])),
    "use_sliding_window": lambda c, d: c.update(use_sliding_window=d.choice([True, False])),
    "max_window_layers": lambda c, d: c.update(max_window_layers=d.choice([0, 1, 2, 28])),
    "layer_types": lambda c, d: c.update(layer_types=[d.choice(["full_attention", "sliding_attention"]) for _ in range(2)]),
    "pattern": lambda c, d: c.update(sliding_window_pattern=d.choice([1, 2, 6])),
    "local base": lambda c, d: c.update(rope_local_base_freq=d.choice([20.0, 1e4])),
    "by layers": lambda c, d: c.update(rope_parameters={
        "full_attention": {"rope_type": d.choice(["default", "linear"]), "factor": 4.0, "rope_theta": 3e4}, "sliding_attention": {"rope_type": "default", "rope_theta": 30.0}}),
    "query scale": lambda c, d: c.update(query_pre_attn_scalar=d.choice([4, 16, 64])),
    "soft caps": lambda c, d: c.update({d.choice(["final_logit_softcapping", "attn_logit_softcapping"]): d.choice([5.0, None])}),
    "both ways": lambda c, d: c.update(use_bidirectional_attention=d.choice([True, False])),
    "hidden_activation": lambda c, d: c.update(hidden_activation=d.choice(["gelu_pytorch_tanh", "gelu_new", "gelu", "silu"])),
    "no positions": lambda c, d: c.pop("max_position_embeddings", None),
    "positions": lambda c, d: c.update(max_position_embeddings=d.choice([32, 128])),
    "pretraining_tp": lambda c, d: c.update(pretraining_tp=2),
    "dtype": lambda c, d: c.update({d.choice(["dtype", "torch_dtype"]): "float32"}),
    "dropout": lambda c, d: c.update(attention_dropout=0.1, resid_pdrop=0.1, embd_pdrop=0.1),
}
# A change of the file of weights.
FILES = ["another lm_head", "no prefix", "buffers", "head alone", "inv_freq"]


def half(config):
    dim = config.get("head_dim") or (128 if config["model_type"] == "qwen3" and "head_dim" not in config else WIDTH // HEADS)
    return int(dim * config.get("partial_rotary_factor", 1)) // 2


def base(family, draw):
    config = {
        "architectures": [FAMILIES[family]], "model_type": family, "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": 2,
        "num_attention_heads": HEADS, "num_key_value_heads": 2, "intermediate_size": 48, "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "max_position_embeddings": POSITIONS, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
    }
    if family in ("qwen3", "gemma3_text"):
        config["head_dim"] = 16
    if family == "gemma3_text":
        config.update(sliding_window=draw.choice([6, 24]), layer_types=["sliding_attention", "full_attention"], query_pre_attn_scalar=16)
    return config


def random_weights(model, seed):
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, tensor in model.state_dict().items():
        if tensor.ndim == 1 and name.endswith("norm.weight"):
            state[name] = (0 if "Gemma" in type(model).__name__ else 1) + 0.3 * torch.randn(tensor.shape, generator=generator)
        else:
            state[name] = torch.randn(tensor.shape, generator=generator) * (0.3 if tensor.ndim == 1 else 1.5 / math.sqrt(tensor.shape[-1]))
    return state


def make(folder, count, seed):
    for index in range(count):
        draw = random.Random(f"{seed} {index}")
        family = list(FAMILIES)[index % len(FAMILIES)]
        config = base(family, draw)
        changes = draw.sample(list(CHANGES), draw.choice([0, 1, 1, 2, 2, 3, 4]) if index >= len(FAMILIES) else 0)
        for change in changes:
            CHANGES[change](config, draw)
        file = draw.choice(FILES) if index >= len(FAMILIES) and draw.random() < 0.2 else None
        place = os.path.join(folder, f"case-{index}")
        os.makedirs(place)
        with open(os.path.join(place, "config.json"), "w") as out:
            json.dump(config, out)
        with open(os.path.join(place, "changes.json"), "w") as out:
            json.dump({"family": family, "changes": changes, "file": file}, out)
        try:
            read = AutoConfig.from_pretrained(place)
            model = AutoModelForCausalLM.from_config(read)
        except Exception as error:
            with open(os.path.join(place, "peer.txt"), "w") as out:
                out.write(f"{type(error).__name__}: {error}"[:300])
            continue
        state = random_weights(model, index)
        tied = read.tie_word_embeddings
        head = state.pop("lm_head.weight")
        if not tied or file == "another lm_head":
            state["lm_head.weight"] = head
        if file == "head alone" and tied:
            state["lm_head.weight"] = state.pop("model.embed_tokens.weight")
        if file == "no prefix":
            state = {name.removeprefix("model."): tensor for name, tensor in state.items()}
        if file == "buffers":
            state["model.position_ids"] = torch.arange(4)
            state["model.statistics"] = torch.ones(3, dtype=torch.float64)
        if file == "inv_freq":
            state["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(half(config))
        save_file(state, os.path.join(place, "model.safetensors"), metadata={"format": "pt"})


def logits(folder, asked):
    said = {}
    for case, length in asked.items():
        place = os.path.join(folder, case)
        try:
            model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, attn_implementation="eager").eval()
            with torch.no_grad():
                out = model(ids(length)).logits
            with open(os.path.join(place, "logits.bin"), "wb") as file:
                file.write(out.contiguous().numpy().tobytes())
            said[case] = None
        except Exception as error:
            said[case] = f"{type(error).__name__}: {error}"[:300]
    return said


def adapter_settings(draw):
    """LoRA as people set it."""
    changes = {
        "rank": dict(r=draw.choice([2, 4]), lora_alpha=draw.choice([4, 9])),
        "use_rslora": dict(use_rslora=True),
        "use_dora": dict(use_dora=True),
        "rank_pattern": dict(rank_pattern=draw.choice([{"q_proj": 6}, {"o_proj": 6}, {"0.*o_proj": 2, ".*proj": 6}, {"model.layers.1.self_attn.o_proj": 3}, {"^model.*o_proj": 5}])),
        "alpha_pattern": dict(alpha_pattern=draw.choice([{"o_proj": 40}, {"layers.1.*": 3}, {"(down|o)_proj": 5.5}])),
        "init": dict(init_lora_weights=draw.choice([True, False, "gaussian", "pissa", "olora", "orthogonal", "pissa_niter_4"])),
        "targets": dict(target_modules=draw.choice(["all-linear", ".*(o_proj|down_proj)", r".*layers\.1.*o_proj", ["model.layers.0.self_attn.o_proj", "mlp.down_proj"], ["self_attn.o_proj"], ["o_proj"], ["down_proj", "o_proj"]])),
        "bias": dict(bias=draw.choice(["all", "lora_only"])),
        "modules_to_save": dict(modules_to_save=["lm_head"]),
        "some layers": dict(layers_to_transform=draw.choice([[0], 1, [0, 1]])),
        "alora": dict(alora_invocation_tokens=[3, 5]),
        "lora_bias": dict(lora_bias=True),
        "layer_replication": dict(layer_replication=[[0, 2], [0, 2]]),
        "exclude": dict(exclude_modules=["down_proj"], target_modules=["down_proj", "o_proj"]),
        "dropout": dict(lora_dropout=0.3),
    }
    chosen = draw.sample(list(changes), draw.choice([1, 1, 2, 3]))
    settings = {"r": 4, "lora_alpha": 8, "target_modules": ["o_proj"], "task_type": "CAUSAL_LM"}
    for name in chosen:
        settings.update(changes[name])
    return settings, chosen


def adapters(folder, count, seed):
    from peft import LoraConfig, PeftModel, get_peft_model

    for index in range(count):
        draw = random.Random(f"adapter {seed} {index}")
        family = list(FAMILIES)[index % len(FAMILIES)]
        place, root = os.path.join(folder, f"case-{index}", "base"), os.path.join(folder, f"case-{index}")
        os.makedirs(place)
        with open(os.path.join(place, "config.json"), "w") as out:
            json.dump(base(family, draw), out)
        settings, chosen = adapter_settings(draw)
        with open(os.path.join(root, "changes.json"), "w") as out:
            json.dump({"family": family, "changes": chosen, "settings": settings}, out)
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(place))
        state = random_weights(model, index)
        save_file(state, os.path.join(place, "model.safetensors"), metadata={"format": "pt"})
        read = lambda: AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, attn_implementation="eager").eval()
        try:
            trained = get_peft_model(read(), LoraConfig(**settings))
            generator = torch.Generator().manual_seed(index)
            for name, weight in trained.named_parameters():
                if "lora_" in name or "modules_to_save" in name:
                    weight.data = 0.3 * torch.randn(weight.shape, generator=generator)
            trained.save_pretrained(os.path.join(root, "adapter"))
            with torch.no_grad():
                out = PeftModel.from_pretrained(read(), os.path.join(root, "adapter")).eval()(ids(TOKENS)).logits
        except Exception as error:
            with open(os.path.join(root, "peer.txt"), "w") as file:
                file.write(f"{type(error).__name__}: {error}"[:300])
            continue
        with open(os.path.join(root, "logits.bin"), "wb") as file:
            file.write(out.contiguous().numpy().tobytes())


def again(folder):
    from peft import PeftModel

    off = {}
    for case in sorted(os.listdir(folder)):
        root = os.path.join(folder, case)
        if not os.path.exists(os.path.join(root, "again")):
            continue
        base = AutoModelForCausalLM.from_pretrained(os.path.join(root, "base"), dtype=torch.float32, attn_implementation="eager")
        model = PeftModel.from_pretrained(base, os.path.join(root, "again"), is_trainable=True).eval()
        text = ids(TOKENS)
        out = model(text).logits
        with open(os.path.join(root, "logits.bin"), "rb") as file:
            first = torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(out.shape)
        off[case] = (out - first).abs().max().item()
        torch.nn.functional.cross_entropy(out[0, :-1], text[0, 1:]).backward()
        gradients = {name.replace(".default", ""): p.grad for name, p in model.named_parameters() if "lora_" in name}
        save_file(gradients, os.path.join(root, "gradients.safetensors"))
    return off


torch.set_num_threads(1)
if sys.argv[1] == "again":
    print(json.dumps(again(sys.argv[2])))
elif sys.argv[1] == "adapters":
    adapters(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    print(json.dumps({"ids": ids(TOKENS)[0].tolist()}))
elif sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    print(json.dumps({"ids": ids(TOKENS)[0].tolist()}))
else:
    with open(sys.argv[3]) as file:
        print(json.dumps(logits(sys.argv[2], json.load(file))))
