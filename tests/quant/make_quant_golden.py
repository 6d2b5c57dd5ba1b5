#!/usr/bin/env python3
"""Writes tests/golden/quant.gold: blocks and rows converted by the `gguf` package (0.19.0).

Usage: make_quant_golden.py OUT        (needs: pip install gguf==0.19.0 numpy)

Layout, little endian: "SQG1", u32 number of records, then records of
u32 kind (0 decode, 1 encode), u32 type id, u32 number of elements, source bytes, result bytes.
"""
import struct
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

# Offsets of the f16 scales in a block.
SCALES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}
# 0, -0, Inf, -Inf, NaN (quiet, signalling, negative), subnormals, normals at both ends.
SPECIAL = [0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x7D01, 0xFE55, 0x0001, 0x8001, 0x03FF,
           0x83FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00, 0x2E66]
F32 = np.float32
rng = np.random.default_rng(20261130)


def decode_blocks(t):
    """Random blocks, every special scale in every place, with random and extreme codes."""
    _, size = GGML_QUANT_SIZES[t]
    blocks = []
    for fill in (None, 0x00, 0xFF, 0x80, 0x0F):
        for i in range(len(SPECIAL) if fill is None or fill == 0xFF else 4):
            b = rng.integers(0, 256, size, dtype=np.uint8)
            if fill is not None:
                b[:] = fill
            for place, at in enumerate(SCALES[t]):
                s = SPECIAL[i] if place == 0 else SPECIAL[(7 * i + 5) % len(SPECIAL)]
                b[at:at + 2] = np.frombuffer(struct.pack("<H", s), np.uint8)
            blocks.append(b)
    for _ in range(24):
        b = rng.integers(0, 256, size, dtype=np.uint8)
        for at in SCALES[t]:
            scale = np.array([rng.normal() * 0.05], np.float16)
            b[at:at + 2] = scale.view(np.uint8)
        blocks.append(b)
    return np.concatenate(blocks)


def encode_rows(n):
    """Blocks of n floats: every magnitude, ties, zeros, infinities, NaN, subnormals."""
    rows = []
    for e in range(-150, 128, 6):
        rows.append(rng.normal(size=n) * 2.0 ** e)
    for _ in range(40):
        rows.append(rng.normal(size=n))
    for k in (7, 8, 15, 16, 31, 127):  # grids that hit the codes, and the ties between them
        rows.append(rng.integers(-k, k + 1, n) * 0.5)
        rows.append(np.append(rng.integers(-k, k, n - 1) + 0.5, k))
        rows.append(rng.choice([-1.0, 1.0], n) * k)
    rows += [np.zeros(n), -np.zeros(n), np.full(n, 3.0), np.full(n, -3.0), np.arange(n) * 1.0]
    for x in (np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-38, -1e-39, 65504.0,
              65520.0, 65519.99, 6e-8, 2.0 ** -25, 2.0 ** -24 * 1.5):
        for at in (0, n // 2 + 1, n - 1):
            r = rng.normal(size=n)
            r[at] = x
            rows.append(r)
        rows.append(np.full(n, x))
        r = np.zeros(n)
        r[3 % n] = x
        rows.append(r)
    r = rng.normal(size=n)
    r[0], r[1] = np.inf, -np.inf
    rows.append(r)
    with np.errstate(over="ignore"):
        return np.concatenate(rows).astype(F32)


def floats():
    bits = rng.integers(0, 2 ** 32, 1500, dtype=np.uint32)
    edge = [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF,
            0x7F7F8000, 0x7F7F7FFF, 0x00000001, 0x007FFFFF, 0x00800000, 0x33000000, 0x33000001,
            0x32FFFFFF, 0x33800000, 0x33C00000, 0x387FC000, 0x387FE000, 0x387FFFFF, 0x38800000,
            0x477FE000, 0x477FEFFF, 0x477FF000, 0x3F808000, 0x3F818000, 0x3F801000, 0x3F803000]
    small = rng.integers(0x32000000, 0x48000000, 2500, dtype=np.uint32)
    small[::2] &= np.uint32(0xFFFFF000)  # ties of f16
    small[::3] |= np.uint32(0x80000000)
    return np.concatenate([bits, np.array(edge, np.uint32), small]).view(F32)


def main():
    np.seterr(all="ignore")
    records = []

    def add(kind, t, n, src, dst):
        records.append(struct.pack("<3I", kind, int(t), n) + src.tobytes() + dst.tobytes())

    x = floats()
    halves = rng.integers(0, 65536, 4000, dtype=np.uint16)
    halves[:len(SPECIAL)] = SPECIAL
    add(0, T.F32, x.size, x, dequantize(x.view(np.uint8), T.F32))
    add(1, T.F32, x.size, x, quantize(x, T.F32))
    for t in (T.F16, T.BF16):
        raw = halves.view(np.uint8)
        add(0, t, halves.size, raw, dequantize(raw, t))
        add(1, t, x.size, x, quantize(x, t))
    for t in SCALES:
        elems, size = GGML_QUANT_SIZES[t]
        raw = decode_blocks(t)
        add(0, t, raw.size // size * elems, raw, dequantize(raw, t))
        if elems == 32:
            x = encode_rows(elems)
            add(1, t, x.size, x, quantize(x, t))
    data = b"SQG1" + struct.pack("<I", len(records)) + b"".join(records)
    with open(sys.argv[1], "wb") as f:
        f.write(data)
    print(f"{sys.argv[1]}: {len(records)} records, {len(data)} bytes")


main()
