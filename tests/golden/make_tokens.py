"""Records how hard texts are cut into tokens. Run by hand, never in CI; see README.md.

    python make_tokens.py NAME=FILE.gguf ...     NAME: one of smollm2 gemma3 llama-bpe qwen2 phi-3
    python make_tokens.py --compare NAME=FILE.gguf      compares with FILE.gguf.inp and .out, too

Writes tokens_NAME.jsonl. Nothing is added to a text (no BOS, no EOS), and control tokens that a
text spells out are plain text.
"""
import argparse
import json
import os
import random
import unicodedata

import oracle

HERE = os.path.dirname(os.path.abspath(__file__))
UNKNOWN, CONTROL = 2, 3
PRE = {"smollm2": "smollm", "llama-bpe": "llama-bpe", "qwen2": "qwen2"}     # the others: SPM

PLAIN = [
    "", " ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\n\n\n", " \n", "\n ", "\t\n", " \t ",
    "a", " a", "a ", "  a", "a  ", "   a   b    c     ", "a\n b", "a \n b", "a\n\n b", "a \n\n  b",
    "a\r\nb", "a\r\n\r\nb", "\ta", "\t\ta", "a\t\tb", "\t a", " \ta", "  \n  \n  x", "x\n  \n\n y ",
    " " * 7 + "x", " " * 16 + "x", " " * 31 + "x", " " * 33 + "x", " " * 80, "\n" * 40, "\t" * 20,
    "x" + " " * 65 + "y", "\n" * 3 + " " * 5 + "\t" * 2 + "z", "Hello", " Hello", "Hello world",
    " Hello World!", "Hello, world!", "HELLO hello HeLLo hELLO",
    "the quick brown fox jumps over the lazy dog", "The Quick Brown Fox", "tHe qUiCk bRoWn",
    "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaftskapitän",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababab", "zzzzzzzzzqqqqqqqqqq", "xX" * 20,
]
CONTRACTIONS = [
    "I'm you're he's it'd we'll they've don't", "I'M YOU'RE HE'S IT'D WE'LL THEY'VE DON'T",
    "I'm I'M i'm I'd I'D I'll I'LL I'Ll 'Tis 'tis 'TWAS", "'s", "'S", " 's", " 'S", "''s", "x's's",
    "rock 'n' roll", "'hello' 'HELLO'", "can’t won’t I’m", "'re're'RE", "y'all'd've",
    "o'clock", "'\u017f 'S 's", "\u212a 'k", "'d 'D 'dd 'DD", "'lL 'Ll 'v 'V",
    "l'été d'Été L'ÉTÉ",
]
DIGITS = [
    "0", "3", "33", "333", "3333", "33333", "333333", "3333333", "1234567890123", " 12 345 6789",
    "3.14159", "1,000,000.00", "-273.15", "1e-10", "0x1F600", "192.168.0.1", "12:34:56",
    "2024-02-29", "a1b2c3", "1a2b3c", "x86_64", "v1.2.3-rc4", "²³¹", "½ ¼ ¾", "Ⅷ ⅻ Ⅳ",
    "①②③ ⑽", "٠١٢٣٤٥٦٧٨٩", "१२३४५", "๑๒๓", "１２３４",
    "𝟘𝟙𝟚 𝟛", "10²=100", "5th 1st 2nd", "7\t8\n9", "٣٫١٤", "৪৫৬ ৭",
]
PUNCTUATION = [
    "!", "!!", "!!!!!!", "...", "…", "?!?!", "a.b.c", "(x)", "[[x]]", "{{ x }}", "--", "---",
    "—", "–", "«quoted»", "“smart” ‘quotes’", "a/b\\c", "@user #tag $9 %d ^ & *",
    "~`|<>", "::", "->", "=>", "=====", " !", " !!\n", "!\n\n", ".\n.\n", ",\r\n", " (\n",
    "a,b;c:d", "§ ¶ † ‡ •", "€ £ ¥ ₹ ₿", "+-×÷=≠≈±",
    "∑∫∂√∞ ∈∉⊂", "←→↑↓⇒⇔", "★☆♠♣♥♦", "┌─┐│└┘",
    "😀!😀?", "a_b __c__ _d", "http://example.org/a?b=c&d=%20", "me@example.org",
    "C:\\dir\\file.txt", "$x_i^2 + \\frac{1}{2}$", "<b>bold</b><br/>", "<|im_start|>user",
    "<|endoftext|>", "<s>", "</s> <unk> <pad>", "<bos>", "<eos><start_of_turn>", "[INST] [/INST]",
    "<0x41>", "<0x0A>", "▁", "▁a ▁▁b", "a▁b", "Ġ", "Ċ", "ĠtheĠ", "â€™",
]
CODE = [
    "def f(x):\n    return x + 1\n", "for (int i = 0; i < n; i++) {\n\tsum += a[i];\n}\n",
    "#include <stdio.h>\n\nint main(void)\n{\n    printf(\"%d\\n\", 42);\n    return 0;\n}\n",
    "if(a&&b||!c){d=e?f:g;}", "SELECT * FROM t WHERE a = 'b' AND c <> 1;",
    "x = [i**2 for i in range(10)]", "const f = async (x) => { await g(x); };",
    "<div class=\"a\">\n  <p>text</p>\n</div>", "\tif err != nil {\n\t\treturn nil, err\n\t}",
    "fn main() { println!(\"{}\", 1u8 as i32); }",
    "{\"key\": [1, 2.5, true, null], \"s\": \"\\u00e9\"}",
    "camelCase snake_case PascalCase UPPER_CASE", "a=1;b=2;;c", "// comment\n/* more */\n# hash",
    "$ ls -la | grep '^d' > out.txt 2>&1",
    "        deep\n            deeper\n                deepest\n", "λx. x x", "x\n\n\n\n\n\ny",
    "git commit -m \"fix: it's done\"", "\\begin{align}\n  a &= b \\\\\n\\end{align}",
    "0b1010 0o17 1_000",
]
SCRIPTS = [
    "äöüß ÄÖÜ ẞ", "naïve café résumé", "cafe\u0301 re\u0301sume\u0301",
    "Ça va? Où est-ce? À bientôt!", "Zażółć gęślą jaźń",
    "Příliš žluťoučký kůň", "Iñtërnâtiônàlizætiøn", "Cửa Việt Nguyễn",
    "C\u031b\u0309a Vie\u0323\u0302t", "İstanbul ıi Iİ", "ﬁ ﬂ ﬃ",
    "Ελληνικά και Ἀρχαῖα", "ΑΣ ας ΑΣ.",
    "Привет, мир! Как дела?", "Българският език",
    "Україна є її ґ", "Ћирилица и ђ", "Հայերեն",
    "ქართული", "שלום עולם", "שָׁלוֹם", "السلام عليكم",
    "مَرْحَبًا بِالعَالَم", "فارسی می‌خواهم", "اُردُو",
    "العدد ١٢٣ هنا", "हिन्दी में लिखा",
    "क्षत्रिय ज्ञान", "नमस्ते दुनिया १२३",
    "বাংলা ভাষা", "தமிழ் மொழி", "తెలుగు",
    "ಕನ್ನಡ", "മലയാളം", "සිංහල",
    "ภาษาไทยไม่มีช่องว่าง", "ລາວ",
    "ភាសាខ្មែរ", "မြန်မာ", "བོད་སྐད", "አማርኛ",
    "ᏣᎳᎩ", "ᓄᓇᕗᑦ", "中文字符", "我想在apple工作1314151天～",
    "繁體中文與簡體中文", "你好，世界！", "日本語のテキスト",
    "カタカナ ひらがな 漢字", "ｶﾀｶﾅ ＦＵＬＬ ｗｉｄｔｈ",
    "한국어 텍스트", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "㈱㍿㌔", "𠀀𠮷𡃁",
    "𓀀𓂀", "𐍈𐌰", "𝔘𝔫𝔦 𝒞𝓊𝓇", "中 文 空 格",
    "中文\n\n日本語\n한국어", "。。。！？", "「括弧」『二重』",
    "ｈｅｌｌｏ　ｗｏｒｌｄ",
]
SYMBOLS = [
    "😀", "😀😃😄", "a😀b", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈",
    "👩🏿‍🚀 🧑🏻‍🤝‍🧑🏾", "🇩🇪🇫🇷🇯🇵", "1️⃣ #️⃣",
    "❤️ ❤ ♥️", "☺︎ ☺️", "🤷‍♀️🤦🏾‍♂️",
    "🚀 (normal) 😶‍🌫️ ✅", "🫀🫁🪴", "\U0001f468\u200d", "\u200d\u200d",
    "a\u200bb", "a\u00a0b", "\u00a0\u00a0x", "a\u00adb", "\ufeffx", "\u2028x\u2029y",
    "\u2003x\u2009y", "\u3000x", "\u0085x", "\x0bx\x0cy", "\x1f\x7f\x01",
    "a\u0300\u0301\u0302\u0303b", "\u0301x", " \u0301",
    "Z\u0351\u036b\u0343\u036aa\u0308\u034dl\u0320\u0307g\u0337o\u0321", "x\u20dd", "\ufffd",
    "\ue000\uf8ff", "\U000f0000", "e\u0301\u00e9", "\u1e9b\u0323", "A\u030a Å Å",
    "\u0f71\u0f72\u0f74", "क\u094d\u200dष",
]


def mixes(n):
    """Seeded joins of pieces of the lists above."""
    rng = random.Random(20)
    pool = [t for part in (PLAIN[43:], CONTRACTIONS, DIGITS, PUNCTUATION, CODE, SCRIPTS, SYMBOLS)
            for t in part]
    glue = ["", "", " ", " ", "  ", "\n", "\n\n", "\t", "\r\n", ", ", "'", "_", "1", "   \n "]
    for _ in range(n):
        text = ""
        for _ in range(rng.randrange(2, 6)):
            part = rng.choice(pool)
            if len(part) > 12 and rng.random() < 0.6:
                at = rng.randrange(len(part) - 6)
                part = part[at:at + rng.randrange(2, 12)]
            text += part + rng.choice(glue)
        yield text


# Added in Unicode 14 (Python 3.11 knows them, the bar is 13); the rest is unassigned there.
NEW_IN_14 = [(0x61d, 0x61d), (0x870, 0x89f), (0x8b5, 0x8b5), (0x8c8, 0x8d2), (0xc3c, 0xc3c),
             (0xc5d, 0xc5d), (0xcdd, 0xcdd), (0x170d, 0x170d), (0x1715, 0x1715), (0x171f, 0x171f),
             (0x180f, 0x180f), (0x1ac1, 0x1ace), (0x1b4c, 0x1b4c), (0x1b7d, 0x1b7e),
             (0x1dfa, 0x1dfa), (0x20c0, 0x20c0), (0x2c2f, 0x2c2f), (0x2c5f, 0x2c5f),
             (0x2e53, 0x2e5d), (0x9ffd, 0x9fff), (0xa7c0, 0xa7c1), (0xa7d0, 0xa7d9),
             (0xa7f2, 0xa7f4), (0xfbc2, 0xfbc2), (0xfd40, 0xfd4f), (0xfdcf, 0xfdcf),
             (0xfdfe, 0xfdff), (0x10570, 0x105bc), (0x10780, 0x107ba), (0x10f70, 0x10f89),
             (0x11070, 0x11075), (0x110c2, 0x110c2), (0x116b9, 0x116b9), (0x11740, 0x11746),
             (0x11ab0, 0x11abf), (0x12f90, 0x12ff2), (0x16a70, 0x16ac9), (0x1aff0, 0x1affe),
             (0x1b11f, 0x1b122), (0x1cf00, 0x1cfc3), (0x1d1e9, 0x1d1ea), (0x1df00, 0x1df1e),
             (0x1e290, 0x1e2ae), (0x1e7e0, 0x1e7fe), (0x1f6dd, 0x1f6df), (0x1f7f0, 0x1f7f0),
             (0x1f979, 0x1f979), (0x1f9cc, 0x1f9cc), (0x1fa7b, 0x1fa7c), (0x1faa9, 0x1faac),
             (0x1fab7, 0x1faba), (0x1fac3, 0x1fac5), (0x1fad7, 0x1fad9), (0x1fae0, 0x1fae7),
             (0x1faf0, 0x1faf6), (0x2a6de, 0x2a6df), (0x2b735, 0x2b738)]


def texts():
    out = PLAIN + CONTRACTIONS + DIGITS + PUNCTUATION + CODE + SCRIPTS + SYMBOLS + list(mixes(80))
    out = list(dict.fromkeys(out))
    for ch in {c for t in out for c in t}:
        assert unicodedata.category(ch) not in ("Cn", "Cs"), hex(ord(ch))
        assert not any(lo <= ord(ch) <= hi for lo, hi in NEW_IN_14), hex(ord(ch))
    return out


def sentencepiece(path):
    """SentencePiece itself, on a model made of the file's tokens, scores and types.

    Gemma's file spells blank runs with real blanks; the model they come from has U+2581 there.
    """
    import sentencepiece as sp
    from sentencepiece import sentencepiece_model_pb2 as pb
    tokens, scores, types, unk, prefix = oracle.gguf_fields(
        path, *("tokenizer.ggml." + n for n in
                ("tokens", "scores", "token_type", "unknown_token_id", "add_space_prefix")))
    model = pb.ModelProto()
    for i, (token, score, kind) in enumerate(zip(tokens, scores, types)):
        kind = UNKNOWN if i == unk else CONTROL if kind == UNKNOWN else kind
        model.pieces.add(piece=token.replace(" ", "▁"), score=score, type=kind)
    model.trainer_spec.model_type = pb.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = len(tokens)
    for name, i in ("unk", unk), ("bos", -1), ("eos", -1), ("pad", -1):
        setattr(model.trainer_spec, f"{name}_id", i)
    model.trainer_spec.unk_piece = tokens[unk]
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = prefix is not False
    model.normalizer_spec.remove_extra_whitespaces = False
    proc = sp.SentencePieceProcessor()
    proc.LoadFromSerializedProto(model.SerializeToString())
    return lambda text: proc.EncodeAsIds(text)


def encoder(name, path):
    if name not in PRE:
        return sentencepiece(path)
    tok = oracle.byte_level_bpe(path, PRE[name])
    return lambda text: tok.encode(text, add_special_tokens=False).ids


def compare(name, path, encode):
    if name == "gemma3":
        other = oracle.gemma(path)
        for text in texts():
            a, b = encode(text), other.encode(text, add_special_tokens=False).ids
            if a != b:
                print(f"  transformers differs on {text!r}: {a} != {b}")
    if os.path.exists(path + ".inp"):
        with open(path + ".inp", encoding="utf-8", newline="") as f:
            inp = f.read().split("\n__ggml_vocab_test__\n")
        with open(path + ".out", encoding="utf-8") as f:
            out = [[int(i) for i in line.split()] for line in f]
        bad = [(t, encode(t), o) for t, o in zip(inp, out) if encode(t) != o]
        print(f"  {len(bad)} of {len(out)} texts differ from .out")
        for text, got, want in bad:
            print(f"    {text!r}: {got} != {want}")


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("--compare", action="store_true")
    arg.add_argument("files", nargs="+", metavar="NAME=FILE.gguf")
    arg = arg.parse_args()
    for name, path in (f.split("=", 1) for f in arg.files):
        encode = encoder(name, path)
        with open(os.path.join(HERE, f"tokens_{name}.jsonl"), "w", encoding="utf-8") as f:
            for text in texts():
                line = {"text": text, "ids": encode(text)}
                f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        print(name, len(texts()), "texts")
        if arg.compare:
            compare(name, path, encode)


main()
