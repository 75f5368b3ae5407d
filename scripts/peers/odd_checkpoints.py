"""Tiny random checkpoints with odd configurations, and what transformers computes with each: one folder a case, with `expected.json`.

    python odd_checkpoints.py FOLDER FIRST COUNT FAMILIES

A case is a configuration and a way of storing weights, both drawn from the case's number. The weights fit what transformers reads in the
configuration, so that a key which another reader takes otherwise shows in the numbers.
"""
import json
import random
import sys
import traceback
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
warnings.filterwarnings("ignore")
torch.set_num_threads(1)

FAMILIES = ["llama", "mistral", "qwen2", "qwen3", "phi3", "gemma3_text"]
# Sequences are given whole: dynamic and long scalings go by their length. They lie on both sides of the windows and positions below.
LENGTHS = [6, 14, 23, 45]
LABELS = 3
TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


# The kinds of RoPE scaling that a family's models have; others now and then.
SCALINGS = {"phi3": ["longrope", "su", "longrope", "default"]}
ALL_SCALINGS = ["default", "linear", "dynamic", "llama3", "yarn", "longrope", "linear", "llama3", "su"]


def scaling(rng, family, half):
    """A rope_scaling or rope_parameters, right or nearly so."""
    factors = lambda: [round(rng.uniform(1, 4), 2) for _ in range(half)]
    kind = rng.choice(ALL_SCALINGS if rng.random() < 0.1 else SCALINGS.get(family, ALL_SCALINGS[:-1]))
    fields = {rng.choice(["type", "rope_type", "rope_type"]): kind}
    if rng.random() < 0.06:
        fields["type"], fields["rope_type"] = rng.sample(["default", "linear", "llama3", kind], 2)
    if kind not in ("default", "su") and rng.random() < 0.97:
        fields["factor"] = rng.choice([1, 2, 2.5, 4.0, 8])
    if kind == "llama3":
        fields["low_freq_factor"], fields["high_freq_factor"] = rng.choice([(1, 4), (1.0, 4.0), (0.5, 2)])
    if kind in ("longrope", "su"):
        fields["short_factor"], fields["long_factor"] = factors(), factors()
        if rng.random() < 0.2:
            fields["attention_factor"] = rng.choice([1, 1.3, None])
    if kind == "yarn":
        for key, values in {
            "beta_fast": [32, 8.0], "beta_slow": [1, 2.0], "attention_factor": [1.2, 1, None], "mscale": [0.7, 1.0, 0],
            "mscale_all_dim": [0.8, 1.0, 0], "truncate": [True, False],
        }.items():
            if rng.random() < 0.3:
                fields[key] = rng.choice(values)
    if kind in ("llama3", "yarn", "longrope", "su", "dynamic") and rng.random() < 0.6:
        fields["original_max_position_embeddings"] = rng.choice([8, 16, 32])
    if rng.random() < 0.25:
        fields["rope_theta"] = rng.choice([500, 1000.0, 500000.0])
    if rng.random() < 0.05:
        fields["partial_rotary_factor"] = rng.choice([1.0, 0.5, 1])
    if rng.random() < 0.05:
        fields["rope_freq_base"] = 7
    return fields


def configuration(rng, family):
    """A config.json of a family."""
    heads = rng.choice([1, 2, 4, 6])
    head_dim = rng.choice([4, 8, 16])
    config = {
        "model_type": family,
        "vocab_size": rng.choice([48, 64, 100]),
        "hidden_size": heads * head_dim,
        "intermediate_size": rng.choice([24, 40]),
        "num_hidden_layers": rng.choice([1, 2, 3]),
        "num_attention_heads": heads,
        "num_key_value_heads": rng.choice([h for h in (1, 2, 3, 4, 6) if heads % h == 0]),
        "pad_token_id": 0,
    }
    layers = config["num_hidden_layers"]

    def maybe(share, key, *values, wild=()):
        """Wild values are those that transformers is likely to refuse."""
        if rng.random() < share:
            config[key] = rng.choice(wild if wild and rng.random() < 0.06 else values)

    if family in ("qwen3", "gemma3_text") or rng.random() < 0.25:
        config["head_dim"] = rng.choice([head_dim, 8, 12]) if family != "phi3" else head_dim
    maybe(0.02, "head_dim", None)
    maybe(0.06, "num_key_value_heads", None)
    if rng.random() < 0.05:
        del config["num_key_value_heads"]
    maybe(0.75, "rms_norm_eps", 1e-5, 1e-6, 0.01, 1e-3, wild=[1, 0, None, "1e-5"])
    maybe(0.5, "hidden_act", "silu", "silu", "swish", wild=["gelu", "gelu_pytorch_tanh", "relu", None, "SiLU"])
    maybe(0.6, "rope_theta", 10000.0, 500, 1000000.0, 10000, wild=[None, "10000"])
    maybe(0.8, "max_position_embeddings", 16, 24, 32, 64, 128, 4096, wild=[None, 0])
    maybe(0.12, "original_max_position_embeddings", 8, 16, 32, wild=[None])
    half = (config.get("head_dim") or head_dim) // 2
    for key, share in (("rope_scaling", 0.45), ("rope_parameters", 0.25)):
        if rng.random() < share:
            config[key] = rng.choice([None, {}]) if rng.random() < 0.1 else scaling(rng, family, half)
    maybe(0.03, "partial_rotary_factor", 1.0, 0.5, 1, wild=[None])
    maybe(0.6, "tie_word_embeddings", True, False, False, wild=[None])
    maybe(0.35, "attention_bias", True, False, False, wild=[None])
    maybe(0.1, "mlp_bias", False, wild=[True, None])
    maybe(0.03, "mlp_bias", True)
    maybe(0.1, "qkv_bias", False, True)
    maybe(0.1, "use_qk_norm", True, False)
    maybe(0.45, "sliding_window", 4, 8, 16, 40, None, wild=[0])
    maybe(0.4, "use_sliding_window", True, True, False, wild=[None])
    maybe(0.25, "max_window_layers", 0, 1, 2, 28)
    if rng.random() < 0.1:
        kinds = ["full_attention", "sliding_attention"] if config.get("sliding_window") and config.get("use_sliding_window") else ["full_attention"]
        config["layer_types"] = [rng.choice(kinds) for _ in range(layers)]
    maybe(0.04, "no_rope_layers", [0] * layers)
    maybe(0.04, "sliding_window_pattern", 2, 3)
    maybe(0.5, "architectures", ["LlamaForCausalLM"], ["Qwen2ForCausalLM"], ["LlamaModel"], None, [])
    maybe(0.4, rng.choice(["torch_dtype", "dtype"]), "float32", "bfloat16", "float16", wild=["auto", None])
    maybe(0.2, "pretraining_tp", 1, 2)
    for key in ("attention_dropout", "resid_pdrop", "embd_pdrop"):
        maybe(0.1, key, 0.0, 0.5)
    for key in ("use_cache", "is_decoder", "is_causal", "use_bidirectional_attention", "rope_interleaved", "output_hidden_states", "tie_encoder_decoder"):
        maybe(0.04, key, True, False)
    for key, value in {
        "logits_scaling": 4.0, "logit_scale": 0.5, "embedding_multiplier": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.5,
        "query_pre_attn_scalar": 64, "final_logit_softcapping": 5.0, "attn_logit_softcapping": 5.0, "attention_chunk_size": 8,
        "num_experts": 4, "rope_local_base_freq": 1000.0, "attn_implementation": "eager", "_attn_implementation": "eager", "norm_eps": 0.1,
        "layer_norm_eps": 0.1, "hidden_activation": "gelu_pytorch_tanh", "chunk_size_feed_forward": 2, "pruned_heads": {"0": [0]},
        "use_mrope": True, "mrope_section": [1, 1], "scale_attn_by_inverse_layer_idx": True, "num_nextn_predict_layers": 1,
        "cross_attention_hidden_size": 8, "n_embd": 7, "torchscript": True, "name_or_path": "other", "_name_or_path": "mistralai/Mistral-Nemo",
        "transformers_version": "4.30.0", "tie_words_embeddings": True, "scale_embedding": True, "add_cross_attention": True,
        "clip_qkv": 0.1, "parallel_attn": True, "use_parallel_residual": True, "rotary_pct": 0.5, "rotary_dim": 4, "alibi": True,
        "rope_ratio": 4.0, "original_rope_theta": 7, "max_length": 9, "is_encoder_decoder": False, "qk_layernorm": True, "rotary_percentage": 0.5,
    }.items():
        maybe(0.025, key, value)
    maybe(0.02, "quantization_config", None, wild=[{}, {"quant_method": "bitsandbytes", "load_in_8bit": False}])
    maybe(0.02, rng.choice(["hidden_size", "num_hidden_layers", "vocab_size"]), "8", None, 8.0)
    if rng.random() < 0.02:
        del config[rng.choice(["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])]
    maybe(0.5, "eos_token_id", 2, [2], [2, 3], 3, wild=[None, 999, []])
    maybe(0.3, "bos_token_id", 1, 4, wild=[None])
    return config


def weights(config, rng):
    """Weights of the model that transformers builds from a configuration, large enough that every path matters."""
    torch.manual_seed(rng.randrange(2**31))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    state = {}
    for name, tensor in model.state_dict().items():
        if name.endswith("norm.weight"):
            state[name] = torch.randn_like(tensor) * 0.1 + (0 if "gemma" in config.model_type else 1)
        elif name.endswith("bias"):
            state[name] = torch.randn_like(tensor) * 0.3
        elif "embed_tokens" in name:
            state[name] = torch.randn_like(tensor) * 0.4
        else:
            state[name] = torch.randn_like(tensor) / tensor.shape[-1] ** 0.5
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"].clone()
    return state


def stored(state, rng, config, kinds):
    """Tensors as a file has them; `kinds` gets the names of what was done."""
    head, embedding = "lm_head.weight", "model.embed_tokens.weight"
    tied = bool(config.tie_word_embeddings)
    if tied:
        # Most files of a tied model hold the embedding alone.
        way = rng.choice(["embedding", "embedding", "embedding", "both", "other head", "head alone"])
        if way == "embedding":
            del state[head]
        elif way == "other head":
            state[head] = torch.randn_like(state[head])
        elif way == "head alone":
            del state[embedding]
        kinds.append(f"tied: {way}")

    def change(share, kind, act):
        if rng.random() < share:
            act()
            kinds.append(kind)

    def convert(wanted, of):
        for name in wanted:
            state[name] = state[name].to(TYPES[of])

    names = list(state)
    of = rng.choice(["F32", "F32", "F32", "BF16", "F16"])
    if of != "F32":
        convert(names, of)
        kinds.append(of)
    change(0.05, "mixed types", lambda: convert(rng.sample(names, 3), rng.choice(["F16", "BF16", "F32"])))
    change(0.08, "I64 buffer", lambda: state.update({"model.embed_tokens.position_ids": torch.arange(9)}))
    change(0.08, "F64 buffer", lambda: state.update({"model.rotary.table": torch.ones(3, dtype=torch.float64)}))
    change(0.05, "BOOL mask", lambda: state.update({"model.layers.0.self_attn.bias": torch.ones(1, 1, 4, 4, dtype=torch.bool)}))
    change(0.05, "empty buffer", lambda: state.update({"model.nothing": torch.ones(0)}))
    change(0.08, "inv_freq", lambda: state.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}))
    change(0.04, "a layer too many", lambda: state.update({"model.layers.9.input_layernorm.weight": torch.ones(8)}))
    change(0.04, "unread bias", lambda: state.update({"model.layers.0.mlp.down_proj.bias": torch.ones(int(config.hidden_size))}))
    change(0.04, "unread q bias", lambda: state.setdefault("model.layers.0.self_attn.q_proj.bias", torch.ones(8)))
    change(0.02, "a weight in F64", lambda: state.update({names[-2]: state[names[-2]].double()}))
    change(0.02, "a weight in I32", lambda: state.update({names[-2]: state[names[-2]].to(torch.int32)}))
    change(0.03, "a weight missing", lambda: state.pop(rng.choice(names), None))
    change(0.02, "a weight of another shape", lambda: state.update({"model.norm.weight": torch.ones(3)}))
    prefix = rng.random()
    if prefix < 0.12:
        for name in list(state):
            if name.startswith("model."):
                state[name.removeprefix("model.")] = state.pop(name)
        kinds.append("no prefix")
    elif prefix < 0.14:
        for name in list(state):
            state[f"model.{name}"] = state.pop(name)
        kinds.append("prefix twice")
    return {name: tensor.contiguous() for name, tensor in state.items()}


def write(folder, config, rng, kinds):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    model_config = AutoConfig.from_pretrained(folder)
    state = stored(weights(model_config, rng), rng, model_config, kinds)
    if rng.random() < 0.15:
        names = list(state)
        shards = {f"model-0000{i + 1}-of-00002.safetensors": {name: state[name] for name in names[i::2]} for i in range(2)}
        for file, tensors in shards.items():
            save_file(tensors, folder / file, {"format": "pt"})
        index = {"metadata": {}, "weight_map": {name: file for file, tensors in shards.items() for name in tensors}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        kinds.append("shards")
    else:
        save_file(state, folder / "model.safetensors", {"format": "pt"} if rng.random() < 0.9 else None)
    if rng.random() < 0.5:
        choices = {"eos_token_id": [2, [2, 3], [5], None], "bos_token_id": [1, None], "temperature": [0.6], "do_sample": [True]}
        generation = {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.6}
        (folder / "generation_config.json").write_text(json.dumps(generation))


def run(folder, rng):
    """What transformers says of a folder."""
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    model.eval()
    made_up = sorted(info["missing_keys"]) + sorted(map(str, info.get("mismatched_keys") or []))
    size = model.get_input_embeddings().weight.shape[0]
    ids = [rng.randrange(size) for _ in range(max(LENGTHS))]
    labels = [[rng.randrange(size) for _ in ids] for _ in range(LABELS)]
    rows = {}
    with torch.no_grad():
        for length in LENGTHS:
            logits = model(torch.tensor([ids[:length]]), use_cache=False).logits[0].double()
            if not torch.isfinite(logits).all():
                raise ValueError("logits are not finite")
            logProbs = torch.log_softmax(logits, -1)
            rows[length] = [[logProbs[t, row[t]].item() for t in range(length)] for row in labels]
    end = model.generation_config.eos_token_id
    ends = [] if end is None else end if isinstance(end, list) else [end]
    return {"madeUp": made_up, "ids": ids, "labels": labels, "logProbs": rows, "ends": ends}


def main():
    target, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    families = sys.argv[4].split(",")
    for case in range(first, first + count):
        rng = random.Random(case)
        family = families[case % len(families)]
        folder, kinds = target / f"{case:04d}-{family}", []
        config = configuration(rng, family)
        expected = {}
        try:
            write(folder, config, rng, kinds)
            expected = run(folder, rng)
        except Exception as error:  # Whatever transformers refuses.
            last = traceback.extract_tb(error.__traceback__)[-1]
            expected = {"refused": f"{type(error).__name__}: {error}".splitlines()[0][:300], "at": f"{Path(last.filename).name}:{last.lineno}"}
        (folder / "expected.json").write_text(json.dumps({"kinds": kinds, **expected}))


main()
print(json.dumps({}))
