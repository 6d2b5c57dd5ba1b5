"""What the golden scripts share: exact float64 runs of transformers, the .gold file, tokenizers.

Needs torch, transformers, accelerate, tokenizers, gguf, numpy. See README.md beside this file.
"""
import contextlib
import hashlib
import struct

import numpy as np

N_TOP = 64          # highest logits recorded of a large vocabulary
N_FURTHER = 960     # further, seeded ids recorded beside them


# --- float64 -------------------------------------------------------------------------------

@contextlib.contextmanager
def float64_everywhere():
    """Makes torch.float32 mean float64.

    The model classes compute norms, softmax and RoPE in float32 even in a float64 model; they say
    `.float()`, `.to(torch.float32)`, `dtype=torch.float`. Inside this context all of them widen.
    """
    import torch
    was = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = was


def llama3_factors(cfg):
    """What a converter stores as rope_freqs.weight: float32 divisors of the RoPE frequencies."""
    rope = cfg.rope_parameters
    dim = cfg.head_dim
    freq = rope["rope_theta"] ** -(np.arange(0, dim, 2, dtype=np.float64) / dim)
    wave = 2 * np.pi / freq
    old, factor = rope["original_max_position_embeddings"], rope["factor"]
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    smooth = (old / wave - low) / (high - low)
    mid = 1 / ((1 - smooth) / factor + smooth)
    out = np.where(wave < old / high, 1.0, np.where(wave > old / low, factor, mid))
    return out.astype(np.float32)


def exact_rope(model):
    """Recomputes the RoPE frequencies in float64 (a built model holds them in float32)."""
    import torch
    cfg, emb = model.config, model.model.rotary_emb
    dim = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
    step = torch.arange(0, dim, 2, dtype=torch.float64) / dim

    def freq(rope):
        inv = float(rope["rope_theta"]) ** -step
        kind = rope["rope_type"]
        if kind == "linear":
            inv = inv / rope["factor"]
        elif kind == "llama3":
            inv = inv / torch.from_numpy(llama3_factors(cfg).astype(np.float64))
        else:
            assert kind == "default", kind
        return inv

    def put(name, rope):
        old = getattr(emb, name)
        new = freq(rope)
        assert torch.allclose(old.double(), new, rtol=1e-5), (name, old, new)
        setattr(emb, name, new)

    if hasattr(emb, "layer_types"):
        for kind in emb.layer_types:
            put(f"{kind}_inv_freq", cfg.rope_parameters[kind])
    else:
        put("inv_freq", cfg.rope_parameters)


def run(model, ids, n_last):
    """Float64 logits [n_last, n_vocab] of the last positions."""
    import torch
    exact_rope(model)
    model.eval()
    with torch.no_grad(), float64_everywhere():
        out = model(input_ids=torch.tensor([ids]), use_cache=False, logits_to_keep=n_last)
    logits = out.logits[0]
    assert logits.dtype == torch.float64 and logits.shape[0] == n_last
    assert torch.isfinite(logits).all()
    return logits.numpy()


# --- the .gold file ------------------------------------------------------------------------

def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").digest()


def lse(row):
    top = row.max()
    return float(top + np.log(np.exp(row - top).sum()))


def pick(row, pos):
    """Recorded ids of one position: the highest, falling, then seeded ones, ascending."""
    order = np.lexsort((np.arange(row.size), -row))
    top, rest = order[:N_TOP], np.sort(order[N_TOP:])
    more = np.random.Generator(np.random.PCG64(pos)).choice(rest, N_FURTHER, replace=False)
    return np.concatenate([top, np.sort(more)])


def write_gold(path, name, digest, ids, pos, logits, whole):
    """logits: [len(pos), n_vocab] float64. whole: record every id, else pick()."""
    text = name.encode()
    with open(path, "wb") as f:
        f.write(b"SGLD" + struct.pack("<I", 1) + digest)
        f.write(struct.pack("<I", len(text)) + text)
        f.write(struct.pack("<I", logits.shape[1]))
        f.write(struct.pack("<I", len(ids)) + np.asarray(ids, "<i4").tobytes())
        f.write(struct.pack("<I", len(pos)) + np.asarray(pos, "<i4").tobytes())
        for p, row in zip(pos, logits):
            rec = np.arange(row.size) if whole else pick(row, p)
            f.write(struct.pack("<I", rec.size) + rec.astype("<i4").tobytes())
            f.write(row[rec].astype("<f8").tobytes() + struct.pack("<d", lse(row)))


def read_gold(path):
    with open(path, "rb") as f:
        data = f.read()
    at = 0

    def take(kind, n=1):
        nonlocal at
        out = np.frombuffer(data, kind, n, at)
        at += out.nbytes
        return out

    assert take("S4")[0] == b"SGLD" and take("<u4")[0] == 1
    gold = {"sha256": take("u1", 32).tobytes()}
    gold["name"] = take("u1", take("<u4")[0]).tobytes().decode()
    gold["n_vocab"] = int(take("<u4")[0])
    gold["ids"] = take("<i4", take("<u4")[0])
    gold["pos"] = take("<i4", take("<u4")[0])
    gold["rec"] = []
    for _ in gold["pos"]:
        n = take("<u4")[0]
        gold["rec"].append((take("<i4", n), take("<f8", n), float(take("<f8")[0])))
    assert at == len(data)
    return gold


def nmse(got, want):
    return float(((got - want) ** 2).sum() / (want ** 2).sum())


# --- GGUF and tokenizers -------------------------------------------------------------------

def gguf_fields(path, *names):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    return [fields[n].contents() if n in fields else None for n in names]


def byte_level_bpe(path, pre):
    """A tokenizers.Tokenizer of a byte-level vocabulary, without special tokens."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers as pt
    tokens, merges = gguf_fields(path, "tokenizer.ggml.tokens", "tokenizer.ggml.merges")
    merges = [tuple(m.split(" ")) for m in merges]
    vocab = {t: i for i, t in enumerate(tokens)}
    # Llama 3 and its kin look a whole piece up before merging: tokens no merge leads to.
    tok = Tokenizer(models.BPE(vocab, merges, ignore_merges=pre == "llama-bpe"))
    if pre == "smollm":
        steps = [pt.Digits(individual_digits=True), pt.ByteLevel(add_prefix_space=False)]
    else:
        steps = [pt.Split(Regex(SPLIT[pre]), "isolated"),
                 pt.ByteLevel(add_prefix_space=False, use_regex=False)]
    tok.pre_tokenizer = pt.Sequence(steps)
    return tok


SPLIT = {
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
                 r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
             r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def gemma(path):
    """The tokenizer that transformers makes of a gemma3 GGUF file."""
    from transformers.integrations.gguf import convert_gguf_tokenizer, get_gguf_tokenizer
    arch, data, _ = get_gguf_tokenizer(path)
    tok, _ = convert_gguf_tokenizer(arch, data)
    return tok
