"""Records the goldens of the two real models. Run by hand, never in CI; see README.md.

    python make_golden.py smollm2 SmolLM2-135M-Instruct.Q4_1.gguf
    python make_golden.py gemma3 gemma-3-270m.Q4_K_M.gguf
"""
import argparse
import os

import numpy as np
import torch
from gguf import GGUFReader
from transformers import AutoModelForCausalLM

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
N_LAST = 16
MODELS = {
    "smollm2": (64, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "gemma3": (640, "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
}
GEMMA_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
}


def tokens(name, path, n):
    with open(os.path.join(HERE, "text.txt"), encoding="utf-8") as f:
        text = f.read()
    if name == "gemma3":
        ids = [2] + oracle.gemma(path).encode(text, add_special_tokens=False).ids
    else:
        ids = oracle.byte_level_bpe(path, "smollm").encode(text).ids
    assert len(ids) >= n, len(ids)
    return ids[:n]


def check_smollm2(model):
    c = model.config
    assert (c.num_hidden_layers, c.hidden_size, c.num_attention_heads) == (30, 576, 9)
    assert (c.num_key_value_heads, c.head_dim, c.vocab_size) == (3, 64, 49152)
    assert c.rope_parameters == {"rope_theta": 100000.0, "rope_type": "default"}


def check_gemma3(model):
    """The file says neither window period nor window base nor query scale."""
    c = model.config
    full = [i for i, t in enumerate(c.layer_types) if t == "full_attention"]
    assert full == [5, 11, 17] and c.sliding_window == 512
    assert c.rope_parameters["full_attention"] == {"rope_theta": 1e6, "rope_type": "default"}
    assert c.rope_parameters["sliding_attention"] == {"rope_theta": 1e4, "rope_type": "default"}
    assert c.query_pre_attn_scalar == 256
    assert all(lay.self_attn.scaling == 1 / 16 for lay in model.model.layers)
    scale = model.model.embed_tokens.embed_scale
    assert abs(float(scale) - 640 ** 0.5) < 1e-12, float(scale)
    assert c.attn_logit_softcapping is None and c.final_logit_softcapping is None
    assert c.hidden_activation == "gelu_pytorch_tanh"


def exact_gemma_norms(model, path):
    """The loader takes 1 off in float32, which rounds small weights; take it off in float64."""
    with torch.no_grad():
        for t in GGUFReader(path).tensors:
            parts = t.name.split(".")
            if t.name == "output_norm.weight":
                w = model.model.norm.weight
            elif parts[0] == "blk" and parts[2] in GEMMA_NORMS:
                w = model.get_parameter(f"model.layers.{parts[1]}.{GEMMA_NORMS[parts[2]]}.weight")
            else:
                continue
            new = torch.from_numpy(np.array(t.data, np.float64)) - 1
            assert torch.allclose(w, new, atol=1e-6)
            w.copy_(new)


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("name", choices=MODELS)
    arg.add_argument("gguf")
    arg.add_argument("--compare", action="store_true", help="print the f32-in-f64 difference")
    arg = arg.parse_args()
    n_tok, sha = MODELS[arg.name]
    digest = oracle.sha256(arg.gguf)
    assert digest.hex() == sha, digest.hex()
    ids = tokens(arg.name, arg.gguf, n_tok)
    folder, file = os.path.split(os.path.abspath(arg.gguf))
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.float64, attn_implementation="eager")
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    {"smollm2": check_smollm2, "gemma3": check_gemma3}[arg.name](model)
    if arg.compare:
        with torch.no_grad():
            plain = model(input_ids=torch.tensor([ids]), use_cache=False, logits_to_keep=N_LAST)
        plain = plain.logits[0].numpy()
    if arg.name == "gemma3":
        exact_gemma_norms(model, arg.gguf)
    logits = oracle.run(model, ids, N_LAST)
    if arg.compare:
        print("NMSE of transformers' float64, which is float32 in places:",
              oracle.nmse(plain, logits))
    pos = list(range(n_tok - N_LAST, n_tok))
    out = os.path.join(HERE, f"{arg.name}.gold")
    oracle.write_gold(out, arg.name, digest, ids, pos, logits, whole=False)
    gold = oracle.read_gold(out)
    for p, (rec, val, _) in zip(gold["pos"], gold["rec"]):
        nxt = ids[p + 1] if p + 1 < n_tok else -1
        print(p, "next", nxt, "top", rec[:4].tolist(), val[:4].round(3).tolist())


main()
