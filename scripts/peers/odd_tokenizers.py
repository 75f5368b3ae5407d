"""Small tokenizers of every kind with odd files around them, and what transformers does with each: one folder a case, with `expected.json`.

    python odd_tokenizers.py FOLDER FIRST COUNT

The peer is `TokenizersBackend`, which goes by the files. AutoTokenizer takes for some names in `tokenizer_class` a class that sets
`tokenizer.json`'s pre-tokenizer aside for its own: where ids then differ, `expected.json` says so as `otherClass`.
"""
import json
import random
import sys
import traceback
import warnings
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer
from transformers.tokenization_utils_tokenizers import TokenizersBackend
from transformers.utils import logging

logging.set_verbosity_error()
warnings.filterwarnings("ignore")

CORPUS = [
    "def f(x):\n    return x + 1\n", "assert f([1, 2, 3]) == {'a': None}\n", "for i in range(10):\n\tprint(i * 2)\n", "Hello, how are you?  I'm fine.",
    "The quick brown fox jumps over the lazy dog. 12345 67.89", "naïve café Straße", "日本語のテキスト", "x = 'it''s' # comment\r\n", "user assistant system <s> </s>",
]
PIECES = [
    "def f(x):", "\n", "    ", " ", "  ", "return", "x1", "12345", "1", "42", ".", "...", "'s", "it's", " the", "Hello", "é", "e\u0301", "ﬁ", "日本", "한국", "😀",
    "\t", "\r\n", "\u00a0", "\u3000", "(", ")]", "==", "_", "ABC", "ß", "İ", "１２", "½", "²", "\u0660\u0661", "क्षि", "\u200d", "-", "/", "\\", '"', "\n\n", "<", ">",
]
RARE = ["\ufdd0", "\u0085", "\ufeff", "\u2028", "\u200b", "\x00", "\x1c", "\x7f", "\u0345", "\U000e0001", "\ufffd", "\u0300", "\u2160", "\u1680", "\u180e", "\x0b", "\x0c", "▁"]
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"]
CONTROL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(rng):
    def last(use_regex=False):
        return pre_tokenizers.ByteLevel(add_prefix_space=rng.random() < 0.15, use_regex=use_regex, trim_offsets=True)

    before = rng.choice([
        [], [split(LLAMA3)], [split(LLAMA3)], [split(GPT2)], [split(p) for p in DEEPSEEK], [pre_tokenizers.Digits(individual_digits=True)],
        [pre_tokenizers.Digits(individual_digits=False)], [split(r"\p{N}{1,3}"), split("\n+")], [split(r"\p{N}")], [pre_tokenizers.Punctuation()],
        [pre_tokenizers.Punctuation("isolated"), split(r"\s+", "removed")], [split(" ", "merged_with_next")], [split(r"[0-9]", "merged_with_previous")],
        [split(r"\w+|[^\w\s]+", "isolated", True)], [split(r"\w+", "removed", True)], [split(r"\d", "contiguous")],
    ])
    normalizer = rng.choice([None, None, None, normalizers.NFC(), normalizers.NFKC(), normalizers.NFD()])
    tokenizer = Tokenizer(models.BPE(ignore_merges=rng.random() < 0.3, fuse_unk=rng.random() < 0.2))
    end = last(use_regex=not before or rng.random() < 0.1)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, end]) if before or rng.random() < 0.3 else end
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=rng.choice([270, 320, 360]), special_tokens=CONTROL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    return tokenizer, trainer


def sentence_piece(rng):
    way = rng.choice(["prepend", "metaspace", "metaspace", "metaspace"])
    unigram = rng.random() < 0.3
    fallback = rng.random() < 0.8
    model = models.Unigram() if unigram else models.BPE(unk_token="<unk>", fuse_unk=rng.random() < 0.8, byte_fallback=fallback)
    tokenizer = Tokenizer(model)
    tail = [decoders.ByteFallback(), decoders.Fuse()]
    if way == "prepend":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), *tail, decoders.Strip(" ", 1, 0)])
    else:
        scheme, cut = rng.choice(["first", "always", "never"]), rng.random() < 0.5
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=cut)
        strip = [] if scheme == "never" else [decoders.Strip(" ", 1, 0)]
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), *tail, *strip])
        if rng.random() < 0.3:
            tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme, split=cut)
        if rng.random() < 0.3:
            tokenizer.normalizer = rng.choice([normalizers.NFKC(), normalizers.Replace("\n", " "), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    special = [*CONTROL, *(f"<0x{i:02X}>" for i in range(256))] if fallback and not unigram else CONTROL
    if unigram:
        return tokenizer, trainers.UnigramTrainer(vocab_size=120, special_tokens=CONTROL, unk_token="<unk>", show_progress=False)
    return tokenizer, trainers.BpeTrainer(vocab_size=len(special) + rng.choice([80, 120]), special_tokens=special, show_progress=False)


def words(rng):
    if rng.random() < 0.6:
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>", continuing_subword_prefix=rng.choice(["##", "@@"])))
        tokenizer.normalizer = rng.choice([normalizers.BertNormalizer(lowercase=rng.random() < 0.5), normalizers.Lowercase()])
        tokenizer.pre_tokenizer = rng.choice([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Whitespace()])
        prefix = tokenizer.model.continuing_subword_prefix
        tokenizer.decoder = decoders.WordPiece(prefix=prefix, cleanup=rng.random() < 0.5)
        return tokenizer, trainers.WordPieceTrainer(vocab_size=150, special_tokens=CONTROL, continuing_subword_prefix=prefix, show_progress=False)
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = rng.choice([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Whitespace(), pre_tokenizers.CharDelimiterSplit(" ")])
    return tokenizer, trainers.WordLevelTrainer(vocab_size=60, special_tokens=CONTROL, show_progress=False)


def post_processor(rng, tokenizer):
    begin, end = ("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>"))
    level = processors.ByteLevel(trim_offsets=rng.random() < 0.5)
    both = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[begin, end])
    one = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[begin])
    return rng.choice([None, None, level, one, one, both, processors.Sequence([level, one]), processors.RobertaProcessing(end, begin), processors.BertProcessing(end, begin)])


def odd_json(rng, content, kinds):
    """Changes of tokenizer.json that the library's own objects do not write."""
    def change(share, kind, act):
        if rng.random() < share:
            act()
            kinds.append(kind)

    model = content["model"]
    change(0.05, "dropout 0", lambda: model.update(dropout=0.0))
    change(0.03, "dropout", lambda: model.update(dropout=0.5))
    change(0.05, "truncation", lambda: content.update(truncation={"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}))
    change(0.05, "padding", lambda: content.update(padding={"strategy": {"Fixed": 12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<unk>"}))
    if model["type"] == "BPE":
        change(0.15, "merges as texts", lambda: model.update(merges=[m if isinstance(m, str) else " ".join(m) for m in model["merges"]] if not any(" " in p for m in model["merges"] for p in m) else model["merges"]))
        change(0.05, "no type", lambda: model.pop("type"))
        change(0.03, "unknown word", lambda: model.update(unk_token=None))
    for token in content["added_tokens"]:
        for flag in ("lstrip", "rstrip", "single_word", "normalized"):
            change(0.02, f"{token['content']} {flag}", lambda: token.update({flag: True}))
    change(0.1, "control in words alone", lambda: content["added_tokens"].pop())
    known = {text if isinstance(text, str) else text[0] for text in model["vocab"]}
    markers = [text for text in ["<|User|>", "<think>", "ab", "  "] if text not in known]
    first = len(model["vocab"]) + (1 if rng.random() < 0.05 else 0)
    change(0.3, "role markers", lambda: content["added_tokens"].extend(
        {"id": first + i, "content": text, "single_word": False, "lstrip": rng.random() < 0.03, "rstrip": rng.random() < 0.03, "normalized": rng.random() < 0.3, "special": text.startswith("<") and rng.random() < 0.2}
        for i, text in enumerate(markers)
    ))


def tokenizer_config(rng, kinds):
    config = {}
    named = {"bos_token": "<s>", "eos_token": rng.choice(["</s>", "<|im_end|>"]), "unk_token": "<unk>", "pad_token": "<unk>"}
    for key, text in named.items():
        if rng.random() < (0.97 if key == "eos_token" else 0.7):
            way = rng.random()
            config[key] = text if way < 0.6 else {"__type": "AddedToken", "content": text, "lstrip": False, "normalized": False, "rstrip": way > 0.97, "single_word": False}

    def maybe(share, key, *values):
        if rng.random() < share:
            config[key] = rng.choice(values)

    maybe(0.9, "tokenizer_class", "PreTrainedTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend", "LlamaTokenizer", "LlamaTokenizerFast", "GPT2Tokenizer", "Qwen2Tokenizer", "GemmaTokenizer", "NoSuchTokenizer")
    maybe(0.4, "add_bos_token", True, False)
    maybe(0.3, "add_eos_token", True, False)
    maybe(0.3, "add_prefix_space", True, False)
    maybe(0.3, "legacy", True, False)
    maybe(0.4, "clean_up_tokenization_spaces", True, False)
    maybe(0.3, "model_max_length", 5, 2048, 1000000000000000019884624838656)
    maybe(0.1, "split_special_tokens", True, False)
    maybe(0.1, "padding_side", "left", "right")
    maybe(0.1, "spaces_between_special_tokens", True, False)
    maybe(0.1, "use_default_system_prompt", True, False)
    maybe(0.1, "additional_special_tokens", ["<|im_start|>"], [])
    maybe(0.1, "extra_special_tokens", {"image_token": "<|im_start|>"}, ["<|im_start|>"], {})
    maybe(0.1, "image_token", "<|im_start|>")
    maybe(0.05, "errors", "replace", "strict")
    maybe(0.05, "do_lower_case", True, False)
    maybe(0.05, "truncation_side", "left")
    return config


TEMPLATES = json.loads((Path(__file__).parent / "chat-templates.json").read_text(encoding="utf-8"))


def texts(rng, names):
    pieces = [*PIECES, *names]
    for i in range(24):
        pool = [*pieces, *RARE] if i % 4 == 3 else pieces
        yield "".join(rng.choice(pool) for _ in range(rng.randint(1, 9)))


def write(folder, rng, kinds):
    folder.mkdir(parents=True)
    tokenizer, trainer = rng.choice([byte_level, byte_level, byte_level, sentence_piece, sentence_piece, sentence_piece, words])(rng)
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    processor = post_processor(rng, tokenizer)
    if processor is not None:
        tokenizer.post_processor = processor
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
    kinds.append(" ".join(filter(None, [content["model"]["type"], *((content[key] or {}).get("type") for key in ("normalizer", "pre_tokenizer", "decoder", "post_processor"))])))
    odd_json(rng, content, kinds)
    config = tokenizer_config(rng, kinds)
    if rng.random() < 0.25:
        config["added_tokens_decoder"] = {str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in content["added_tokens"] if rng.random() < 0.9}
    if rng.random() < 0.2:
        choices = {"eos_token": ["</s>", "<|im_end|>"], "bos_token": ["<s>"], "unk_token": ["<unk>"], "additional_special_tokens": [["<|im_start|>"]]}
        chosen = {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.7}
        (folder / "special_tokens_map.json").write_text(json.dumps(chosen))
        kinds.append("map")
    if rng.random() < 0.05:
        size = max([*content["model"]["vocab"].values()] if isinstance(content["model"]["vocab"], dict) else [len(content["model"]["vocab"]) - 1]) + 7
        (folder / "added_tokens.json").write_text(json.dumps({"<late>": size}))
        kinds.append("added_tokens.json")
    name = None
    if rng.random() < 0.7:
        name, template = rng.choice(list(TEMPLATES.items()))
        way = rng.random()
        if way < 0.5:
            config["chat_template"] = template
        elif way < 0.6:
            config["chat_template"] = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": template}]
        elif way < 0.65:
            (folder / "additional_chat_templates").mkdir()
            (folder / "additional_chat_templates" / "tool_use.jinja").write_text("T")
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        elif way < 0.7:
            config["chat_template"] = {"default": template}
        else:
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
            if rng.random() < 0.2:
                config["chat_template"] = "unused"
        kinds.append(f"template {name} {way:.2f}")
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
    model_type = rng.choice(["llama", "mistral", "qwen2", "qwen3", "phi3"])
    (folder / "config.json").write_text(json.dumps({"model_type": model_type, "eos_token_id": 2}))


def without_control(tokenizer):
    """A tokenizer to which the texts of control tokens are texts like any other: they are neither added tokens nor words of its model."""
    content = json.loads(tokenizer._tokenizer.to_str())
    content["truncation"] = content["padding"] = content["post_processor"] = None
    ends = {2, tokenizer.eos_token_id}
    control = {t["content"]: t["id"] for t in content["added_tokens"] if (t["special"] or t["id"] in ends) and len(t["content"]) > 1}
    model = content["model"]
    hidden = lambda text: f"\ue000{control[text]}\ue001" if text in control else text
    content["added_tokens"] = [
        {**token, "content": hidden(token["content"]), "normalized": token["normalized"] and token["content"] not in control}
        for token in content["added_tokens"]
    ]
    if isinstance(model["vocab"], list):
        model["vocab"] = [[hidden(text), score] for text, score in model["vocab"]]
    else:
        model["vocab"] = {hidden(text): id for text, id in model["vocab"].items()}
    if "merges" in model:
        model["merges"] = [merge for merge in model["merges"] if "".join(merge if isinstance(merge, list) else merge.split(" ")) not in control]
    if model.get("unk_token"):
        model["unk_token"] = hidden(model["unk_token"])
    return Tokenizer.from_str(json.dumps(content))


def as_text(tokenizer, texts):
    plain = without_control(tokenizer)
    return [plain.encode(text, add_special_tokens=False).ids for text in texts]


def run(folder, rng):
    tokenizer = TokenizersBackend.from_pretrained(folder)
    names = [str(token) for token in tokenizer.added_tokens_decoder.values()]
    special = {id for id, token in tokenizer.added_tokens_decoder.items() if token.special}
    tried = list(texts(rng, rng.sample(names, min(4, len(names)))))
    rows = [
        # What skip_special_tokens means: by itself it keeps special tokens that a normalizer changes.
        [text, ids, tokenizer.decode([id for id in ids if id not in special], skip_special_tokens=True, clean_up_tokenization_spaces=False)]
        for text, ids in zip(tried, as_text(tokenizer, tried))
    ]
    whole = tokenizer("x").input_ids
    inner = tokenizer("x", add_special_tokens=False).input_ids
    at = next(i for i in range(len(whole)) if whole[i : i + len(inner)] == inner)
    chats = []
    for content in ["1 + 1", " def f(x):\n  return x\n", "é 日本"]:
        if tokenizer.chat_template is None:
            break
        try:
            turns = [{"role": "user", "content": content}]
            filled = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False, date_string="26 Jul 2024")
            ids = tokenizer(filled, add_special_tokens=False).input_ids
            chats.append([content, ids, filled])
        except Exception as error:  # Whatever a template raises.
            chats.append([content, None, f"{type(error).__name__}: {error}"[:200]])
    other = None
    try:
        auto = AutoTokenizer.from_pretrained(folder)
        if as_text(auto, tried) != [ids for _, ids, _ in rows]:
            other = type(auto).__name__
    except Exception as error:  # A class that does not take these files.
        other = f"{type(error).__name__}: {error}"[:200]
    return {"rows": rows, "prefix": whole[:at], "eos": tokenizer.eos_token_id, "chats": chats, "otherClass": other}


def main():
    target, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for case in range(first, first + count):
        rng = random.Random(case)
        folder, kinds = target / f"{case:04d}", []
        try:
            write(folder, rng, kinds)
            expected = run(folder, rng)
        except BaseException as error:  # Whatever transformers refuses; the Rust library panics.
            if isinstance(error, KeyboardInterrupt):
                raise
            last = traceback.extract_tb(error.__traceback__)[-1]
            expected = {"refused": f"{type(error).__name__}: {error}".splitlines()[0][:300], "at": f"{Path(last.filename).name}:{last.lineno}"}
        (folder / "expected.json").write_text(json.dumps({"kinds": kinds, **expected}))


main()
print(json.dumps({}))
