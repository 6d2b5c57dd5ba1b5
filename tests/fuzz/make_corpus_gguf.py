#!/usr/bin/env python3
"""Writes the seeds of the GGUF fuzz target into tests/fuzz/corpus/gguf (standard library only)."""
import os
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORM = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q",
        I64: "q", F64: "d"}


def text(s):
    return struct.pack("<Q", len(s)) + s


def scalar(kind, x):
    return text(x) if kind == STRING else struct.pack("<" + FORM[kind], x)


def kv(key, kind, x):
    return text(key) + struct.pack("<I", kind) + scalar(kind, x)


def array(key, kind, xs):
    return (text(key) + struct.pack("<IIQ", ARRAY, kind, len(xs)) +
            b"".join(scalar(kind, x) for x in xs))


def tensor(name, kind, dims, offset):
    return (text(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims) +
            struct.pack("<IQ", kind, offset))


def file(kvs, tensors=(), data=0, version=3, alignment=32):
    b = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(kvs)) + b"".join(kvs)
    b += b"".join(tensors)
    return b + bytes(-len(b) % alignment) + bytes(range(256)) * (data // 256) + bytes(data % 256)


SEEDS = {
    "empty": file([]),
    "scalars": file([kv(b"k%d" % t, t, b"text" if t == STRING else 1)
                     for t in range(13) if t != ARRAY]),
    "arrays": file([array(b"a%d" % t, t, [b"x", b"", b"long one"] if t == STRING else [1, 0, 1])
                    for t in range(13) if t != ARRAY], version=2),
    "tensors": file([kv(b"general.alignment", U32, 64)],
                    [tensor(b"w", 8, [64, 2], 0), tensor(b"bias", 0, [3], 192),
                     tensor(b"new", 43, [7, 1, 1], 256), tensor(b"iq", 16, [256], 320)],
                    400, alignment=64),
    "model": file([kv(b"general.architecture", STRING, b"llama"),
                   kv(b"llama.block_count", U32, 1),
                   array(b"llama.attention.head_count_kv", I32, [2]),
                   array(b"tokenizer.ggml.tokens", STRING, [b"<s>", b"a", b"b"]),
                   array(b"tokenizer.ggml.scores", F32, [0.0, -1.0, -2.0])],
                  [tensor(b"token_embd.weight", 12, [256, 3], 0),
                   tensor(b"output_norm.weight", 0, [256], 448)], 448 + 1024),
    "duplicate": file([kv(b"a", U8, 1), kv(b"a", U8, 2)]),
    "nested": file([text(b"n") + struct.pack("<IIQIQ", ARRAY, ARRAY, 1, U8, 0)]),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "overlap": file([], [tensor(b"a", 0, [32], 0), tensor(b"b", 0, [32], 64)], 256),
}

folder = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "corpus", "gguf")
os.makedirs(folder, exist_ok=True)
for seed, content in SEEDS.items():
    with open(os.path.join(folder, seed), "wb") as f:
        f.write(content)
