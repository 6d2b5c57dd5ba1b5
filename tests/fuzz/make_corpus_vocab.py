#!/usr/bin/env python3
"""Writes the seeds of the vocabulary fuzz target into tests/fuzz/corpus/vocab (standard library
only): small vocabularies of each kind, with special tokens of each type."""
import os
import struct

U32, F32, I32, BOOL, STRING, ARRAY = 4, 6, 5, 7, 8, 9
FORM = {U32: "I", I32: "i", F32: "f", BOOL: "B"}
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def scalar(kind, x):
    return text(x) if kind == STRING else struct.pack("<" + FORM[kind], x)


def kv(key, kind, x):
    return text("tokenizer." + key) + struct.pack("<I", kind) + scalar(kind, x)


def array(key, kind, xs):
    return (text("tokenizer." + key) + struct.pack("<IIQ", ARRAY, kind, len(xs)) +
            b"".join(scalar(kind, x) for x in xs))


def save(name, kvs):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "vocab")
    os.makedirs(here, exist_ok=True)
    with open(os.path.join(here, name), "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(kvs)) + b"".join(kvs))


def byte_chars():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in own]
    table = {b: chr(b) for b in own} | {b: chr(0x100 + i) for i, b in enumerate(rest)}
    return [table[b] for b in range(256)]


def bpe(pre, byte_tokens, extra=()):
    merges = ["a a", "aa aa", "Ġ a", "Ġ Ġ", "ĠĠ ĠĠ", "1 2", "Ċ Ċ"]
    halves = set("".join(merges).replace(" ", ""))
    chars = byte_tokens if set(byte_tokens) >= halves else sorted(halves | set(byte_tokens))
    words = chars + [m.replace(" ", "") for m in merges] + ["whole"]
    special = ["<s>", "<|im_end|>", "<tool>", "<tool><x>"]
    return [kv("ggml.model", STRING, "gpt2"), kv("ggml.pre", STRING, pre),
            array("ggml.tokens", STRING, words + special),
            array("ggml.token_type", I32, [NORMAL] * len(words) + [CONTROL, CONTROL, USER, USER]),
            array("ggml.merges", STRING, merges),
            kv("ggml.bos_token_id", U32, len(words)), *extra]


def spm(byte_fallback, prefix):
    rows = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    rows += [(f"<0x{b:02X}>", BYTE) for b in range(256 if byte_fallback else 0)]
    first = len(rows)
    rows += [(w, NORMAL) for w in ("▁", "t", "h", "e", "th", "▁t", "he", "▁the", "é", "> ▁<", "▁▁")]
    rows += [("<tool>", USER), ("   ", USER), ("<unused>", UNUSED)]
    return [kv("ggml.model", STRING, "llama"), array("ggml.tokens", STRING, [r[0] for r in rows]),
            array("ggml.token_type", I32, [r[1] for r in rows]),
            array("ggml.scores", F32, [-float(max(0, i - first)) for i in range(len(rows))]),
            kv("ggml.unknown_token_id", U32, 0), kv("ggml.bos_token_id", U32, 1),
            kv("ggml.eos_token_id", U32, 2), kv("ggml.add_space_prefix", BOOL, prefix)]


save("bpe_gpt2", bpe("gpt-2", byte_chars()))
save("bpe_few", bpe("qwen2", list("abe<>tol12 x".replace(" ", ""))))
save("bpe_llama", bpe("llama-bpe", list("a1w"), [kv("ggml.add_bos_token", BOOL, 1)]))
save("spm_bytes", spm(True, 0))
save("spm_prefix", spm(True, 1))
save("spm_few", spm(False, 1))
save("none", [kv("ggml.model", STRING, "none")])
