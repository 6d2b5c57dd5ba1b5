"""Makes tiny random models of each family, as GGUF, with their goldens. Run by hand, never in CI.

    python make_tiny.py            writes tiny/NAME.gguf and tiny/NAME.gold
    python make_tiny.py --check    also reads the files back with transformers' own GGUF loader, and
                                   shows how far a change of each tensor or setting moves the logits

A model is drawn as a transformers model, whose float64 logits are the golden, and written by the
converter below, which shares no code with any other converter.
"""
import argparse
import copy
import os
import re
import tempfile

import gguf
import numpy as np
import torch
import transformers as tf

import oracle

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiny")
N_TOK = 32
N_BPE = 288         # 256 bytes, 28 merges, 4 control tokens


def models():
    """name -> (GGUF architecture, seed, config, extra metadata)"""
    eps = 2.0 ** -7     # exact in float32, and large enough to be seen
    out = {}
    # Llama 3's RoPE scaling (rope_freqs in all three ranges), head size != width / heads, untied.
    out["llama3"] = "llama", 1, tf.LlamaConfig(
        vocab_size=N_BPE, hidden_size=48, intermediate_size=72, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=20, max_position_embeddings=512,
        rms_norm_eps=eps, tie_word_embeddings=False,
        rope_parameters={"rope_type": "llama3", "rope_theta": 20000.0, "factor": 8.0,
                         "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 64})
    # The plain case: one KV head, tied head, no scaling, key_length left to its default.
    out["llama"] = "llama", 2, tf.LlamaConfig(
        vocab_size=N_BPE, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=1, max_position_embeddings=256,
        rms_norm_eps=2.0 ** -10, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 3000.0})
    out["qwen2"] = "qwen2", 3, tf.Qwen2Config(
        vocab_size=N_BPE, hidden_size=64, intermediate_size=80, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        rms_norm_eps=eps, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 25000.0})
    out["qwen3"] = "qwen3", 4, tf.Qwen3Config(
        vocab_size=N_BPE, hidden_size=48, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=256,
        rms_norm_eps=eps, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 40000.0})
    out["qwen3moe"] = "qwen3moe", 5, tf.Qwen3MoeConfig(
        vocab_size=N_BPE, hidden_size=48, intermediate_size=96, moe_intermediate_size=16,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        num_experts=8, num_experts_per_tok=2, norm_topk_prob=True, max_position_embeddings=256,
        rms_norm_eps=eps, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0})
    # As converters write Gemma 3: no window period (6), no window base (1e4), no query scale.
    out["gemma3"] = "gemma3", 6, tf.Gemma3TextConfig(
        vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=7,
        num_attention_heads=2, num_key_value_heads=1, head_dim=24, query_pre_attn_scalar=24,
        sliding_window=8, max_position_embeddings=256, rms_norm_eps=eps, tie_word_embeddings=True,
        layer_types=["sliding_attention"] * 5 + ["full_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 1e6},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})
    # All of it said: period, window base, linear scaling of the global layers, cap, own head.
    out["gemma3_linear"] = "gemma3", 7, tf.Gemma3TextConfig(
        vocab_size=256, hidden_size=48, intermediate_size=64, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=1, head_dim=16, query_pre_attn_scalar=16,
        sliding_window=8, max_position_embeddings=256, rms_norm_eps=eps, tie_word_embeddings=False,
        final_logit_softcapping=8.0, layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}})
    return out


# --- weights -------------------------------------------------------------------------------

GAIN = {"q_proj": 1.5, "k_proj": 1.5, "mlp.gate.weight": 3.0, "lm_head": 2.0}


def build(cfg):
    cfg = copy.deepcopy(cfg)
    cfg._attn_implementation = "eager"
    cfg._experts_implementation = "eager"
    model = tf.AutoModelForCausalLM.from_config(cfg, dtype=torch.float64)
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    return model.eval()


def draw(model, seed):
    """Role-scaled weights, each a float32 number. Gemma's norms: stored value minus one."""
    rng = np.random.Generator(np.random.PCG64(seed))
    gemma = model.config.model_type == "gemma3_text"
    with torch.no_grad():
        for name, p in model.named_parameters():
            w = rng.standard_normal(tuple(p.shape))
            if "norm" in name:
                w = 1 + 0.1 * w
            elif name.endswith(".bias"):
                w = 0.5 * w
            elif "embed_tokens" in name:
                w = w / model.config.hidden_size ** 0.5 if gemma else w     # it scales them back
            else:
                gain = next((g for key, g in GAIN.items() if key in name), 1.0)
                w = w * gain / p.shape[-1] ** 0.5
            w = w.astype(np.float32).astype(np.float64)
            p.copy_(torch.from_numpy(w - 1 if gemma and "norm" in name else w))


def router_gap(model, ids):
    """Smallest distance of the last chosen expert from the first one left out, in logits."""
    gaps = []

    def hook(_mod, _args, out):
        top = out[0].topk(model.config.num_experts_per_tok + 1, dim=-1).values
        gaps.append(float((top[:, -2] - top[:, -1]).min()))

    hooks = [lay.mlp.gate.register_forward_hook(hook) for lay in model.model.layers]
    oracle.run(model, ids, 1)
    for h in hooks:
        h.remove()
    return min(gaps)


# --- conversion ----------------------------------------------------------------------------

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
}
GEMMA_NAMES = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def pairs(w, n_head):
    """Rows of each head from halves (x0..x_k, y0..y_k) to adjacent pairs (x0 y0 x1 y1 ..)."""
    return w.reshape(n_head, 2, -1, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def tensors(model, arch):
    cfg = model.config
    for name, p in model.named_parameters():
        w = p.detach().numpy()
        if arch == "gemma3" and "norm" in name:
            w = w + 1
        prefix, rest = "", name
        if m := re.match(r"model\.layers\.(\d+)\.(.*)", name):
            prefix, rest = f"blk.{m[1]}.", m[2]
        if rest == "mlp.experts.gate_up_proj":
            n = w.shape[1] // 2
            yield prefix + "ffn_gate_exps.weight", w[:, :n]
            yield prefix + "ffn_up_exps.weight", w[:, n:]
            continue
        if rest == "mlp.experts.down_proj":
            yield prefix + "ffn_down_exps.weight", w
            continue
        base, leaf = rest.rsplit(".", 1)
        if arch == "llama" and base == "self_attn.q_proj":
            w = pairs(w, cfg.num_attention_heads)
        if arch == "llama" and base == "self_attn.k_proj":
            w = pairs(w, cfg.num_key_value_heads)
        names = {**NAMES, **(GEMMA_NAMES if arch == "gemma3" else {})}
        yield f"{prefix}{names[base]}.{leaf}", w


def add_keys(out, name, arch, cfg):
    out.add_type("model")
    out.add_name(f"tiny {name}")
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_context_length(cfg.max_position_embeddings)
    out.add_embedding_length(cfg.hidden_size)
    out.add_block_count(cfg.num_hidden_layers)
    out.add_feed_forward_length(cfg.intermediate_size)
    out.add_head_count(cfg.num_attention_heads)
    out.add_head_count_kv(cfg.num_key_value_heads)
    out.add_layer_norm_rms_eps(cfg.rms_norm_eps)
    out.add_vocab_size(cfg.vocab_size)
    d_head = getattr(cfg, "head_dim", None) or cfg.hidden_size // cfg.num_attention_heads
    if name not in ("llama", "qwen2"):
        out.add_key_length(d_head)
        out.add_value_length(d_head)
    if arch == "llama":
        out.add_rope_dimension_count(d_head)
    rope = cfg.rope_parameters
    if arch == "gemma3":
        out.add_sliding_window(cfg.sliding_window)
        if name == "gemma3_linear":
            out.add_sliding_window_pattern(2)
            out.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
            out.add_final_logit_softcapping(cfg.final_logit_softcapping)
        rope = rope["full_attention"]
    out.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(rope["factor"])
    if arch == "qwen3moe":
        assert cfg.norm_topk_prob
        out.add_expert_count(cfg.num_experts)
        out.add_expert_used_count(cfg.num_experts_per_tok)
        out.add_expert_feed_forward_length(cfg.moe_intermediate_size)


MERGES = """Ġ t|h e|i n|r e|Ġ a|e r|o n|a t|Ġt he|Ġ s|n d|Ġ o|e n|Ġ w|Ġa nd|in g|o r|i s|i t
a l|o u|Ġo f|e s|Ġt o|Ġ Ġ|Ġ in|ĠĠ ĠĠ|l l""".replace("\n", "|").split("|")
CONTROL = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
PRE = {"llama3": "llama-bpe", "llama": "smollm"}


def add_vocabulary(out, name, arch):
    """A byte-level vocabulary that turns any text into ids; Gemma's files have none."""
    if arch == "gemma3":
        out.add_tokenizer_model("none")
        return
    from transformers.convert_slow_tokenizer import bytes_to_unicode
    tokens = list(bytes_to_unicode().values())
    tokens += [m.replace(" ", "") for m in MERGES] + CONTROL
    assert len(tokens) == len(set(tokens)) == N_BPE, len(tokens)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre(PRE.get(name, "qwen2"))
    out.add_token_list(tokens)
    out.add_token_types([gguf.TokenType.NORMAL] * (N_BPE - 4) + [gguf.TokenType.CONTROL] * 4)
    out.add_token_merges(MERGES)
    out.add_bos_token_id(N_BPE - 4)
    out.add_eos_token_id(N_BPE - 1)
    out.add_add_bos_token(name == "llama3")
    out.add_chat_template(TEMPLATE)


def convert(path, name, arch, model):
    out = gguf.GGUFWriter(path, arch)
    add_keys(out, name, arch, model.config)
    add_vocabulary(out, name, arch)
    if name == "llama3":
        out.add_tensor("rope_freqs.weight", oracle.llama3_factors(model.config))
    for key, w in tensors(model, arch):
        f32 = np.ascontiguousarray(w, np.float32)
        assert (f32 == w).all() or np.abs(f32 - w).max() < 1e-15, key
        out.add_tensor(key, f32)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


# --- checks --------------------------------------------------------------------------------

def read_back(path, model, ids, want):
    """transformers' loader on our file. It has no rule for some settings: the config is ours."""
    folder, file = os.path.split(path)
    cfg = copy.deepcopy(model.config)
    cfg._attn_implementation, cfg._experts_implementation = "eager", "eager"
    got = tf.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, config=cfg, dtype=torch.float64)
    back = oracle.run(got, ids, N_TOK)
    own = tf.AutoConfig.from_pretrained(folder, gguf_file=file)
    skip = {"transformers_version", "dtype", "_name_or_path", "architectures", "layer_types"}
    a, b = own.to_dict(), model.config.to_dict()
    diff = {k: (a[k], b[k]) for k in a if k in b and k not in skip and a[k] != b[k]}
    print(f"  read back by transformers: NMSE {oracle.nmse(back, want):.1e}; its config: {diff}")


def sensitivity(name, model, ids, want):
    low = []
    rng = np.random.Generator(np.random.PCG64(99))
    with torch.no_grad():
        for key, p in model.named_parameters():
            was = p.clone()
            p.mul_(torch.from_numpy(1 + 0.01 * rng.standard_normal(tuple(p.shape))))
            low.append((oracle.nmse(oracle.run(model, ids, N_TOK), want), key))
            p.copy_(was)
    print("  1 % noise in one tensor moves least:", *(f"{k} {v:.1e}" for v, k in sorted(low)[:3]))

    def flip(what, change):
        cfg = copy.deepcopy(model.config)
        change(cfg)
        other = build(cfg)
        other.load_state_dict(model.state_dict())
        moved = oracle.nmse(oracle.run(other, ids, N_TOK), want)
        print(f"  {what}: {moved:.1e}")
        assert moved > 1e-7, what

    flip("eps doubled", lambda c: setattr(c, "rms_norm_eps", c.rms_norm_eps * 2))
    ropes = model.config.rope_parameters
    for kind in ropes if "rope_type" not in ropes else [None]:
        def base(c, k=kind):
            r = c.rope_parameters[k] if k else c.rope_parameters
            r["rope_theta"] *= 1.1
        flip(f"RoPE base + 10 % {kind or ''}", base)
    if name.startswith("gemma3"):
        flip("window 7", lambda c: setattr(c, "sliding_window", 7))
        flip("window 9", lambda c: setattr(c, "sliding_window", 9))
        flip("pattern turned", lambda c: setattr(
            c, "layer_types", c.layer_types[1:] + c.layer_types[:1]))
        flip("query scale", lambda c: setattr(
            c, "query_pre_attn_scalar", c.query_pre_attn_scalar + 1))
    if name == "gemma3_linear":
        flip("no cap", lambda c: setattr(c, "final_logit_softcapping", None))
        flip("no linear scaling", lambda c: c.rope_parameters["full_attention"].update(
            rope_type="default"))
    if name == "llama3":
        flip("no rope_freqs", lambda c: c.rope_parameters.update(rope_type="default"))
    if name == "qwen3moe":
        flip("no norm of top k", lambda c: setattr(c, "norm_topk_prob", False))
        flip("3 experts", lambda c: setattr(c, "num_experts_per_tok", 3))


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("--check", action="store_true")
    arg.add_argument("names", nargs="*")
    arg = arg.parse_args()
    os.makedirs(HERE, exist_ok=True)
    for name, (arch, seed, cfg) in models().items():
        if arg.names and name not in arg.names:
            continue
        rng = np.random.Generator(np.random.PCG64(1000 + seed))
        ids = rng.integers(0, 250, N_TOK).tolist()
        model = build(cfg)
        draw(model, seed)
        while arch == "qwen3moe" and router_gap(model, ids) < 0.05:
            seed += 100
            draw(model, seed)
        logits = oracle.run(model, ids, N_TOK)
        path = os.path.join(HERE, f"{name}.gguf")
        convert(path, name, arch, model)
        oracle.write_gold(path[:-5] + ".gold", f"tiny {name}", oracle.sha256(path), ids,
                          list(range(N_TOK)), logits, whole=True)
        print(f"{name}: seed {seed}, {os.path.getsize(path)} bytes, logits' deviation "
              f"{logits.std():.2f}, largest {abs(logits).max():.2f}")
        if arg.check:
            read_back(path, model, ids, logits)
            sensitivity(name, model, ids, logits)


main()
