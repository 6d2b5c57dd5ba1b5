"""The program from outside: what goes well, and each kind of bad input, with its exit code
and message.

Every case is one run of the program; `cli: N/N` counts them. Python's standard library only.
"""
import ast
import json
import os
import re
import shutil
import struct
import subprocess
import sys

PROGRAM, SOURCE = os.environ["SINTER_PROGRAM"], os.environ["SINTER_SOURCE"]
WORK = os.path.join(os.environ["SINTER_BINARY"], "cli_test.tmp")
TINY = os.path.join(SOURCE, "tests", "golden", "tiny", "llama.gguf")
USAGE, DATA, NOT_FOUND, DEVICE, MEMORY, IO = 2, 65, 66, 69, 71, 74
results = []
# What the tests are told is no option of the program's, which would say so each time.
for name in [n for n in os.environ if n.startswith("SINTER_")]:
    del os.environ[name]


def work(name, data=None):
    path = os.path.join(WORK, name)
    if data is not None:
        with open(path, "wb") as f:
            f.write(data)
    return path


def run(*args, stdin=b"", **more):
    # No stdin is a closed one, so that nothing waits for a terminal.
    return subprocess.run([PROGRAM, *args], input=stdin, capture_output=True, timeout=300, **more)


def case(name, done, code=0, err=None, out=None):
    """One run: its exit code, what stderr says, what stdout holds."""
    told, data = done.stderr.decode("utf-8"), done.stdout.decode("utf-8")  # both whole UTF-8
    good = done.returncode == code
    good = good and (err is None or re.search(err, told, re.S) is not None)
    good = good and (code == 0 or told.startswith("sinter: ") or "\nsinter: " in told)
    if callable(out):
        try:
            good = good and bool(out(data))
        except (ValueError, KeyError, IndexError, TypeError):
            good = False
    else:
        good = good and (out is None or re.search(out, data, re.S) is not None)
    results.append(good)
    if not good:
        print(f"FAIL {name}: exit {done.returncode} (expected {code})\n  args {done.args[1:]}\n"
              f"  stderr {told[:600]!r}\n  stdout {data[:600]!r}")
    return done


def patched(name, *changes, source="f32.gguf"):
    """A dummy with bytes replaced by as many others."""
    with open(work(source), "rb") as f:
        data = f.read()
    for old, new in changes:
        assert len(old) == len(new) and data.count(old) >= 1, (old, data.count(old))
        data = data.replace(old, new, 1)
    return work(name, data)


def typed(name, tensor, type_id):
    """The dummy with one tensor's type changed in the header."""
    with open(work("f32.gguf"), "rb") as f:
        data = bytearray(f.read())
    at = data.index(struct.pack("<Q", len(tensor)) + tensor) + 8 + len(tensor)
    n_dim, = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at + 4 + 8 * n_dim, type_id)
    return work(name, bytes(data))


def help_cases():
    case("version", run("--version"), out=r"^sinter \d+\.\d+\.\d+\n$")
    case("no verb", run(), USAGE, "name a verb")
    case("help", run("-h"), out="usage: sinter VERB")
    verbs = re.findall(r"^VERB\((\w+)", open(os.path.join(SOURCE, "tools", "sinter", "verbs.def"),
                                             encoding="utf-8").read(), re.M)
    for verb in verbs:
        case(f"{verb} -h", run(verb, "-h"), out=lambda s: len(s.splitlines()) <= 40 and verb in s)
        case(f"{verb} --help", run(verb, "--help"), out=r"--threads N.*--backend")
        case(f"help {verb}", run("help", verb), out=f"sinter {verb}: ")
    table = re.findall(r'^VERB\((\w+), "(.*)"\)$', open(os.path.join(
        SOURCE, "tools", "sinter", "verbs.def"), encoding="utf-8").read(), re.M)
    for name, listed in (("-h", run("-h")), ("--help", run("--help")), ("help", run("help"))):
        case(f"verbs of {name}", listed,
             out=lambda s: re.findall(r"^  (\w+) +(.*)$", s.split("\nexamples")[0], re.M) == table)
    case("a switch in the help", run("options"), out=r"--fusion \[on\|off\] .*\(default on\)")
    case("options", run("options", "--json"),
         out=lambda s: {"--threads", "--strict"} <= {o["flag"] for o in json.loads(s)})


def usage_cases(model):
    case("bad verb", run("rnu"), USAGE, "no verb 'rnu'; did you mean run")
    case("far verb", run("xyzzyplugh"), USAGE, "sinter -h lists them")
    case("bad flag", run("run", model, "--tmep", "0"), USAGE, "did you mean --temp")
    case("begins as one", run("run", model, "--temperature", "0"), USAGE, "did you mean --temp")
    case("begun only", run("plan", model, "--cache-ty", "f16"), USAGE, "did you mean --cache-type")
    case("bad short flag", run("bench", "-cktt", "f16"), USAGE, "did you mean -ctk")
    case("bad library flag", run("run", model, "--bakend", "cpu"), USAGE, "did you mean --backend")
    case("far flag", run("run", model, "--qqqqqqqqqqqq"), USAGE, "run --help lists them")
    case("no value", run("run", model, "-n"), USAGE, "-n needs a value")
    case("no number", run("run", model, "-n", "many"), USAGE, "not a whole number")
    case("out of range", run("run", model, "--top-p", "1.5"), USAGE,
         "out of range; it may be 0 to 1")
    case("nan", run("run", model, "--temp", "nan"), USAGE, "out of range")
    case("bad word", run("logits", model, "--ids", "1", "-ctk", "f17"), USAGE, "f32.f16.q8_0")
    case("an option that kernels do not use", run("bench", "--kernels", "-p", "3"), USAGE,
         "--n-prompt has no meaning beside --kernels")
    case("a kind beside a name", run("dummy", "llama-mixed", "--kind", "f32", "-o",
         work("no.gguf")), USAGE, "--kind goes with --arch")
    case("a type beside a small name", run("dummy", "llama-mixed", "--type", "q8_0", "-o",
         work("no.gguf")), USAGE, "--type goes with --like")
    case("json of a dummy", run("dummy", "llama-f32", "--json", "-o", work("no.gguf")), USAGE,
         "--json goes with --list")
    case("kernels as csv", run("bench", "--kernels", "-o", "csv"), USAGE, "-o csv: kernels")
    case("a record of a list", run("fusion", "check", "--list", "--record"), USAGE,
         "--record has no meaning beside --list")
    case("answer and prompt profiled", run("profile", model, "-p", "4", "-n", "4"), USAGE,
         "--n-gen has no meaning beside --n-prompt")
    case("bos around ids", run("logits", model, "--ids", "1", "--no-bos"), USAGE,
         "--no-bos has no meaning beside --ids")
    case("two outputs", run("logits", model, "--ids", "1", "--json", "-o", work("no.npy")), USAGE,
         "--json has no meaning beside --output")
    for flag in ("-ctk", "-ctv"):
        case(f"{flag} that is not compared", run("verify", model, flag, "f16"), USAGE,
             "go with --exact")
    case("bad list", run("bench", "-m", model, "-p", "1,,2"), USAGE, "not a whole number")
    case("value to a switch", run("run", model, "--raw=1", "x"), USAGE, "takes no value")
    for flag in ("--help", "-v", "--quiet"):
        case(f"value to {flag}", run("run", model, f"{flag}=1", "x"), USAGE,
             f"{flag} takes no value")
    case("library range", run("plan", model, "--threads", "9999"), USAGE, "out of range")
    case("too many", run("inspect", model, "more"), USAGE, "one argument too many")
    case("no model", run("inspect"), USAGE, "path of a .gguf file")
    case("two texts", run("tokenize", model, "-p", "a", "-f", "b"), USAGE, "give one")
    case("bad ids", run("logits", model, "--ids", "1,x"), USAGE, "token id, 0 to")
    case("empty id", run("logits", model, "--ids", "1,,2"), USAGE, "token id, 0 to")
    case("comma at the end", run("logits", model, "--ids", "[1,2,]"), USAGE, "last comma")
    case("empty stop text", run("run", model, "--raw", "--stop", "", "x"), USAGE, "--stop")
    case("system text no utf-8", run("run", model, "-sys", b"a\xff", "x"), DATA, "-sys.*at byte 1")
    case("model to stdout", run("dummy", "llama-f32", "-o", "-"), USAGE, "name a file")
    case("id too large", run("logits", model, "--ids", "1,99999999"), USAGE, "token id, 0 to")
    case("no dummy name", run("dummy", "-o", work("x.gguf")), USAGE, "--list")
    case("bad fusion part", run("fusion", "explian", model), USAGE, "did you mean explain")
    case("no dummy", run("dummy", "llama-f23", "-o", work("x.gguf")), NOT_FOUND, "llama-f32")


def switch_cases(model):
    """on or off behind a switch is its value, or refused: never a word of the prompt."""
    raw = ("run", model, "--raw", "-n", "8", "--temp", "0", "--ignore-eos", "-v")
    fused = run(*raw, "the rain")
    results.append(fused.returncode == 0)
    prompt = re.search(rb"cached 0, new \d+", fused.stderr)[0].decode()
    for word in ("on", "off", "true", "false", "yes", "no", "1", "0"):
        case(f"--fusion {word}", run(*raw, "--fusion", word, "the rain"), 0, prompt)
        case(f"--raw {word}", run("run", model, "-n", "1", "--raw", word), USAGE,
             f"--raw takes no value, and '{word}'")
    case("--fusion=off", run(*raw, "--fusion=off", "the rain"), 0, prompt)
    case("--fusion, then a text", run(*raw, "--fusion", "the rain"), 0, prompt)
    case("switched off", run("plan", model, "--steps", "--fusion", "off"),
         out=lambda s: "RMS_NORM" in s and "RMS_NORM+MUL" not in s)
    case("switched on", run("plan", model, "--steps", "--fusion", "on"), out=r"RMS_NORM\+MUL")
    case("strict on", run("plan", model, "-c", "100000", "--strict", "on"), 78, "trained")
    case("strict off", run("plan", model, "-c", "100000", "--strict", "off"), 0, "trained")
    case("--no-fusion off", run(*raw, "--no-fusion", "off"), USAGE, "--no-fusion takes no value")
    case("--no-fusion=off", run(*raw, "--no-fusion=off"), USAGE, "--fusion off does")
    case("-v 1", run("run", model, "-v", "1"), USAGE, "-v takes no value")
    case("a word before", run("run", model, "-n", "1", "on", "--raw"))
    case("a word after --", run("run", model, "-n", "1", "--raw", "--", "on"))
    case("--think maybe", run("run", model, "--think", "maybe"), USAGE, r"on\|off")
    case("think alone", run("run", model, "--think"), USAGE, r"needs a value \(on\|off\)")


def environment_cases(model):
    def with_env(*args, **more):
        return run(*args, env={**os.environ, **more})

    line = "names no option; did you mean SINTER_"
    for form in ([], ["--json"]):
        plain = case("no variable", run("plan", model, *form))
        for name, near in (("SINTER_THRAEDS", "THREADS"), ("SINTER_BACKENDS", "BACKEND"),
                           ("SINTER_CPUMASK", "CPU_MASK")):
            done = case(name, with_env("plan", model, *form, **{name: "1"}), 0,
                        f"warning: the environment variable {name} {line}{near}")
            results.append(done.stderr.count(name.encode()) == 1 and done.stdout == plain.stdout)
    case("far variable", with_env("plan", model, SINTER_QQQQQQQQ="1"), 0, "`sinter options` lists")
    case("no error with --strict", with_env("plan", model, "--strict", SINTER_THRAEDS="1"), 0, line)
    case("counted", with_env("run", model, "--raw", "-n", "1", "-v", "x", SINTER_THRAEDS="1"), 0,
         "warnings 1\n")
    done = case("quiet", with_env("plan", model, "-q", SINTER_THRAEDS="1"))
    results.append(done.stderr == b"")
    case("a value of a variable", with_env("plan", model, SINTER_THREADS="many"), USAGE,
         "SINTER_THREADS.*whole number")
    done = case("a good variable", with_env("plan", model, SINTER_THREADS="1"))
    results.append(done.stderr == b"")


def long_cases(model):
    """Lists of names have no limit."""
    extra = work("extra.gguf")
    names = ",".join(f"blk.{i}.name_of_a_tensor.weight" for i in range(400))
    long = "n" * 3000
    patched("extra.gguf", (b"rope_freqs.weight", b"rope_freqz.weight"), source="optional.gguf")
    for first, last in (("", ",rope_freqz.weight"), ("rope_freqz.weight,", "")):
        for option in ("--skip-tensor", "--skip-tensor="):
            given = f"{first}{names}{last}"
            args = [option + given] if option[-1] == "=" else [option, given]
            done = case("400 tensors left out", run("inspect", extra, *args), 0,
                        r"blk\.399\.name_of_a_tensor\.weight, which the file does not have")
            results.append(done.stderr.count(b"does not have") == 400)
    case("a long name", run("inspect", extra, "--skip-tensor", f"{long},rope_freqz.weight"), 0,
         "names n{200}")
    case("one too few", run("inspect", extra, "--skip-tensor", names), DATA, "rope_freqz")
    keys = ",".join(f"general.key_{i}" for i in range(400))
    done = case("400 keys", run("inspect", model, "--skip-key", keys), 0, "general.key_399, which")
    results.append(done.stderr.count(b"does not have") == 400)
    case("a long list in the environment", run("inspect", extra, env={
        **os.environ, "SINTER_SKIP_TENSOR": names + ",rope_freqz.weight"}), 0, "name_of_a_tensor")
    key = b"k" * 304  # with length, type and value 320 bytes: the data stays aligned
    with open(model, "rb") as f:
        data = f.read()
    n_kv, = struct.unpack_from("<Q", data, 16)
    long_key = work("long_key.gguf", data[:16] + struct.pack("<QQ", n_kv + 1, len(key)) + key +
                    struct.pack("<II", 4, 1) + data[24:])
    case("a long key", run("inspect", long_key), 0, "kkk")
    done = case("a long key left out", run("inspect", long_key, "--skip-key", key.decode()))
    results.append(b"does not have" not in done.stderr)
    done = case("not its first 255 bytes", run("inspect", long_key, "--skip-key", "k" * 255))
    results.append(b"does not have" in done.stderr)
    case("a long label", run("run", model, "--disable", long, "x"), USAGE, "there is no fusion nnn")


def fusion_cases(model):
    """Outside of the source tree, models and labels are looked at before the baseline."""
    def check(*args, **more):
        return run("fusion", "check", *args, cwd=WORK, **more)

    folder = work("models")
    os.mkdir(folder)
    shutil.copy(model, os.path.join(folder, "b c.gguf"))
    shutil.copy(model, os.path.join(folder, "a.gguf"))
    counts = work("counts.csv")
    tree = os.path.join(SOURCE, "tests", "fusion", "cpu.csv")
    case("unknown model", check("--model", "nosuch"), NOT_FOUND,
         "no model 'nosuch'.*llama-mixed, llama-f32.*gemma3-f32")
    case("unknown model, baseline", check("--model", "nosuch", "--baseline", tree), NOT_FOUND,
         "no model 'nosuch'")
    case("no baseline", check("--model", "llama-f32"), NOT_FOUND, "source tree.*--baseline")
    case("unknown label", check("--model", "llama-f32", "--baseline", tree, "--disable",
                                "MATMUL*2+SILU+MULL"), USAGE, r"did you mean MATMUL\*2\+SILU\+MUL;",
         out="^$")
    case("unknown need", check("--ignore-need", "MATMUL+ADD.nothing:Y"), USAGE, "has no need")
    case("full disk", check("--record", "--models", folder, "--baseline", "/dev/full"), IO,
         "/dev/full: .*No space left")
    case("files", check("--models", folder), 0, "no --baseline", out="^fusion: 30/30\n$")
    case("one file", check("--model", model), 0, "no --baseline", out="^fusion: 15/15\n$")
    case("record without a name", check("--models", folder, "--record"), USAGE, "--baseline")
    case("record", check("--models", folder, "--record", "--baseline", counts))
    with open(counts, encoding="utf-8") as f:
        text = f.read()
    results.append("; models a b_c; labels " in text and "\nb_c,MATMUL+ADD,chunk," in text)
    case("compared", check("--models", folder, "--baseline", counts), out=r"^fusion: (\d+)/\1\n$")
    case("a fusion lost",
         check("--models", folder, "--baseline", counts, "--disable", "MATMUL+ADD"),
         1, "failed", out="did not happen: a,MATMUL.ADD,chunk")
    os.remove(os.path.join(folder, "a.gguf"))
    case("a file gone", check("--models", folder, "--baseline", counts), 1, "failed",
         out="universe changed.*did not happen: a,|did not happen: a,.*universe changed")
    work(os.path.join("models", "broken.gguf"), b"GGUF")
    case("a broken file", check("--models", folder), 1, "1 of 16 fusion checks failed\n$",
         out=r"FAIL broken: .*fusion: 15/16")
    case("a file for a folder", check("--models", model), USAGE, "takes a folder of .gguf files")
    case("a folder for a file", check("--model", folder), USAGE, "is a folder; --models")
    case("no folder", check("--models", work("nowhere")), NOT_FOUND, "no such folder")
    os.mkdir(work("bare"))
    case("empty folder", check("--models", work("bare")), NOT_FOUND, "holds no .gguf file")
    case("both", check("--models", folder, "--model", model), USAGE, "not both")
    case("no --models", check("--models"), USAGE, r"needs a value \(FOLDER\)")
    case("no JSON", check("--model", model, "--json"), USAGE, "no --json")
    case("the dummies", check("--list"), out="^llama-mixed\nllama-f32\n")
    for option in (["--record"], ["--list"], ["--baseline", "x"], ["--models", "x"]):
        case("option of check", run("fusion", "explain", model, *option), USAGE,
             f"{option[0]} belongs to sinter fusion check")


def file_cases(model):
    with open(model, "rb") as f:
        data = f.read()
    case("missing file", run("run", work("none.gguf"), "hi"), NOT_FOUND,
         "no such model; give the path")
    case("no path", run("run", "", "hi"), NOT_FOUND, "'': no such model")
    case("model name", run("run", "llama3:8b", "hi"), NOT_FOUND, r"path of a \.gguf file")
    case("folder", run("inspect", WORK), IO, "is a directory")
    os.mkfifo(work("pipe.gguf"))
    case("pipe", run("inspect", work("pipe.gguf")), IO, "not a regular file")
    case("endless file", run("inspect", "/dev/zero"), IO, "not a regular file")
    case("endless text", run("tokenize", model, "-f", "/dev/zero"), DATA, "more than 256 MiB")
    case("hostile name", run("inspect", work("a\nsinter: b\x1b[31m.gguf")), NOT_FOUND,
         r"^sinter: [^\n\x1b]*a sinter: b\?\[31m[^\n\x1b]*\n$")
    case("hostile name beyond ASCII", run("inspect", work("b\x9b31mé.gguf")), NOT_FOUND,
         r"b\?31mé\.gguf: no such")
    case("hostile key", run("inspect", patched("n.gguf", (b"general.name", b"zzz\n\x1b[3mabcd"))),
         0, r"zzz \?\[3mabcd")
    case("hostile keys", run("inspect", work("n.gguf"), "--strict"), 78,
         r"^sinter: [^\n\x1b]*zzz \?\[3mabcd[^\n\x1b]*\n$")
    case("empty", run("inspect", work("empty.gguf", b"")), DATA, "")
    case("no GGUF", run("inspect", work("text.gguf", b"hello world, this is text\n" * 40)), DATA,
         "GGUF")
    case("truncated header", run("inspect", work("t1.gguf", data[:100])), DATA, "")
    case("truncated data", run("inspect", work("t2.gguf", data[:-100])), DATA, "")
    huge = struct.pack("<IIQQ", 0x46554747, 3, 1 << 60, 1 << 60)
    case("hostile counts", run("inspect", work("h1.gguf", huge)), DATA, "")
    case("hostile length", run("inspect", work("h2.gguf", data[:24] + b"\xff" * 8 + data[32:])),
         DATA,
         "")
    case("unknown architecture", run("inspect", patched("a.gguf", (
        b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0zzzzz"))), DATA, "zzzzz")
    case("unknown tokenizer", run("tokenize", patched("k.gguf", (b"\0gpt2", b"\0gptz")), "-p", "a"),
         DATA, "gptz")
    case("unknown pre-tokenizer", run("tokenize", patched("p.gguf", (b"\0smollm", b"\0smollz")),
         "-p",
                                      "a"), DATA, "smollz.*pre-tokenizer")
    case("overridden pre-tokenizer", run("tokenize", work("p.gguf"), "-p", "a", "--pre-tokenizer",
                                         "smollm", "--ids"), out=r"^\[\d+\]\n$")
    case("unknown type", run("inspect", typed("y.gguf", b"blk.0.attn_q.weight", 250)), DATA,
         "attn_q.*250|250.*attn_q")
    case("unsupported type", run("inspect", typed("z.gguf", b"blk.0.attn_norm.weight", 24)), DATA,
         "attn_norm.*(I8|24)")
    case("missing tensor", run("inspect", patched("m.gguf", (b"blk.0.attn_q.weight",
                                                             b"blk.0.attn_z.weight"))),
         NOT_FOUND, "blk.0.attn_q.weight is missing")
    case("optional tensors", run("dummy", "llama-optional", "-o", work("optional.gguf")))
    extra = patched("e.gguf", (b"rope_freqs.weight", b"rope_freqz.weight"), source="optional.gguf")
    case("extra tensor", run("inspect", extra), DATA, "rope_freqz.*--skip-tensor")
    case("extra tensor left out", run("inspect", extra, "--skip-tensor", "rope_freqz.weight"))


def context_cases(model):
    long = "the rain in Spain " * 200
    case("context too small", run("run", model, "--raw", "-c", "4", "hello world, hello"), DATA,
         r"prompt has \d+ tokens, the context holds 4")
    case("prompt too long", run("run", model, "--raw", "-c", "64", long), DATA,
         r"prompt has \d+ tokens, the context holds 64")
    case("answer too long", run("run", model, "--raw", "-c", "16", "--temp", "0", "--ignore-eos",
         "ab"),
         DATA, r"cut after \d+ tokens: with the prompt's \d+ the context of 16 is full",
         out=lambda s: len(s) > 8)
    case("out of memory", run("run", model, "--memory", "1", "-c", "200000", "x"), MEMORY,
         "--memory")
    case("plan refuses", run("plan", model, "--memory", "1", "-c", "200000", "--json"), MEMORY,
         "-c",
         out=lambda s: json.loads(s)["total"] > 1 << 20)
    case("no backend", run("run", model, "x", "--backend", "cuda"), DEVICE, "cuda.*cpu")
    case("cache type", run("run", model, "x", "-ctk", "q8_0"), DATA,
         "cpu has no cache of type Q8_0; it has F32 F16 .Q8_0: ref.")
    case("strict", run("plan", model, "-c", "100000", "--strict"), 78, "trained")


def template_cases(model):
    talk = work("talk.json", b'[{"role": "user", "content": "Hi \\u00e9"}]')
    good = work("good.jinja",
    "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}".encode())
    case("template", run("template", "-t", good, "--messages", talk, "--bos", "<s>"),
         out="^<s>Hi é$")
    case("template of a model", run("template", model, "--messages", talk), out="Hi é")
    case("messages from stdin", run("template", "-t", good, stdin=b'[{"content": "x"}]'), out="^x$")
    case("bad template", run("template", "-t", work("bad.jinja", b"{% for x in %}"), "--messages",
                             talk), DATA, "line 1")
    case("raising template", run("template", "-t", work("raise.jinja",
         b"{{ raise_exception('no') }}"),
                                 "--messages", talk), DATA, "no")
    case("long raise", run("template", "-t", work("raise2.jinja",
         b"{{ raise_exception('no\\nsinter: yes') }}"), "--messages", talk), DATA,
         r"^sinter: [^\n]*no sinter: yes\n$")
    case("NUL in a template", run("template", "-t", work("nul.jinja", b"a\0b"), "--messages", talk),
         DATA, "NUL byte")
    case("bad messages from stdin", run("template", "-t", good, stdin=b"[{]"), DATA,
         "standard input: line 1")
    case("bad messages", run("template", "-t", good, "--messages", work("bad.json", b"[{]")),
         DATA, "")
    case("messages no list", run("template", "-t", good, "--messages", work("o.json", b"{}")), DATA,
         "list")
    case("missing template", run("template", "-t", work("none.jinja")), NOT_FOUND, "none.jinja")


def output_cases(model):
    case("unwritable output", run("dummy", "llama-f32", "-o", os.path.join(WORK, "no", "x.gguf")),
         IO,
         "cannot be written")
    case("unwritable logits", run("logits", model, "--ids", "1", "-o", os.path.join(WORK, "no",
         "x")),
         IO, "cannot be written")
    twin = work("twin.gguf")
    os.link(model, twin)
    case("output over the model", run("logits", model, "--ids", "1", "-o", twin), USAGE,
         "overwrite the model")
    results.append(os.path.getsize(model) > 10000)
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            for args in (["inspect", model], ["run", model, "--raw", "-n", "3", "x"]):
                done = subprocess.run([PROGRAM, *args], stdout=full, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, timeout=300)
                done.stdout = b""
                case("full disk", done, IO, "standard output cannot be written")
        case("full logits", run("logits", model, "--ids", "1,2", "-o", "/dev/full"), IO, "")
    small = ["sh", "-c", 'ulimit -f 1; exec "$0" "$@"', PROGRAM]
    for args in (["dummy", "llama-f32"], ["logits", model, "--ids", "1,2,3,4,5,6,7,8"]):
        done = subprocess.run([*small, *args, "-o", work("limited")], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300)
        case("file size limit", done, IO, "File too large")
        results.append(not os.path.exists(work("limited")))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([PROGRAM, "inspect", model], stdout=write, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=300)
    os.close(write)
    done.stdout = b""
    case("pipe closed by its reader", done, IO, "standard output")
    done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, "dummy", "llama-f32", "-o",
                           work("closed.gguf")], capture_output=True, timeout=300)
    case("closed stdout, nothing to write", done)
    with open(work("closed.gguf"), "rb") as a, open(model, "rb") as b:
        results.append(a.read() == b.read())
    done = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, "inspect", model],
                          capture_output=True, timeout=300)
    case("closed stdout", done, IO, "standard output")


def npy(data):
    assert data[:8] == b"\x93NUMPY\x01\0"
    n, = struct.unpack_from("<H", data, 8)
    head = ast.literal_eval(data[10:10 + n].decode())
    assert head["descr"] == "<f4" and not head["fortran_order"] and (10 + n) % 64 == 0
    rows, cols = head["shape"]
    values = struct.unpack_from(f"<{rows * cols}f", data, 10 + n)
    assert len(data) == 10 + n + 4 * rows * cols
    return rows, cols, values


def logits_cases(model):
    def logits(name, *args):
        path = work(name)
        case(name, run("logits", model, "--ids", "[1, 2, 3, 4, 5]", "-o", path, *args))
        with open(path, "rb") as f:
            return npy(f.read())

    base = logits("base.npy")
    results.append(base[0] == 5 and base[1] > 100)
    results.append(logits("chunked.npy", "-ub", "2") == base)
    ref = logits("ref.npy", "--backend", "ref", "-ctk", "f32", "-ctv", "f32")
    unfused = logits("unfused.npy", "--no-fusion")
    for other in (ref, unfused):
        diff = sum((a - b) ** 2 for a, b in zip(other[2], base[2])) / sum(b * b for b in ref[2])
        results.append(diff < 1e-3)
    done = run("logits", model, "--ids", "1,2,3,4,5", "-o", "-")
    results.append(done.returncode == 0 and npy(done.stdout) == base)
    case("best", run("logits", model, "--ids", "1,2,3,4,5", "--json"),
         out=lambda s: abs(json.loads(s)[0]["logit"] - max(base[2][-base[1]:])) < 1e-6)
    with open(model, "rb") as f:
        data = bytearray(f.read())
    at = json.loads(run("inspect", model, "--json").stdout)["file"]["data_offset"]
    struct.pack_into("<f", data, at, float("nan"))  # the logit of token 0
    bad, path = work("nan.gguf", data), work("nan.npy")
    for args in ((), ("--json",), ("-o", path)):
        case(f"logits not a number {args}", run("logits", bad, "--ids", "1,2", "-q", *args), 1,
             "a logit of tokens 0..1 is not a number", out="^$")
    with open(path, "rb") as f:  # all of it is there to be looked at
        rows, n, value = npy(f.read())
    results.append(rows == 2 and value[0] != value[0] and value[1:n] == value[1:n])


def good_cases(model):
    case("inspect", run("inspect", model), out="general.architecture.*llama")
    case("inspect json", run("inspect", model, "--json"), out=lambda s: json.loads(s)["file"])
    case("ids", run("tokenize", model, "-p", "hello"), out=r"^ +\d+  \"")
    case("tokens json", run("tokenize", model, "--json", stdin="é 漢".encode()),
         out=lambda s: all("id" in x for x in json.loads(s)))
    case("no bos", run("tokenize", model, "-p", "a", "--ids", "--no-bos"),
         out=lambda s: len(json.loads(s)) == 1)
    spelt = "<|im_end|>"
    case("special", run("tokenize", model, "-p", spelt, "--ids", "--no-bos"),
         out=lambda s: len(json.loads(s)) == 1)
    case("no special", run("tokenize", model, "-p", spelt, "--ids", "--no-bos",
         "--no-parse-special"),
         out=lambda s: len(json.loads(s)) > 1)
    case("plan", run("plan", model), out=r"weights +\d+.*total +\d+")
    case("plan steps", run("plan", model, "--steps"), out="MATMUL")
    case("fusion list", run("fusion", "list"), out=r"RMS_NORM\+MUL")
    case("fusion explain", run("fusion", "explain", model), out=r"attn_norm.*RMS_NORM")
    case("dummy list", run("dummy", "--list"), out="llama-f32.*--like qwen3-0.6b")
    case("profile", run("profile", model, "-n", "4"), out="MATMUL")
    case("profile json", run("profile", model, "-p", "20", "--json"),
         out=lambda s: sum(r["calls"] for r in json.loads(s)) > 0)
    case("a large step", run("profile", model, "-p", "600", "-ub", "600", "--json"),
         out=lambda s: [r["calls"] for r in json.loads(s) if r["label"] == "EMBED"] == [1])
    bench = ("bench", "-m", model, "-p", "8,16", "-n", "4", "-d", "0,32", "-r", "2", "-o")
    case("bench md", run(*bench, "md"), out=r"pp8 .*pp16 .*tg4 .*pp8 @ d32.*tg4 @ d32")
    hostile = patched("r.gguf", (b"dummy llama f32", b"\x1b[3m\n|\xc3\"x\xffyz123"))
    shown = r"\?\[3m [|/]\?\"{1,2}x\?yz123"
    for form in ("md", "csv"):
        case(f"hostile name in {form}", run("bench", "-m", hostile, "-p", "2", "-n", "0", "-r", "1",
             "-o", form), out=shown)
    odd = patched("odd\x9b\x7f.gguf")
    case("hostile path in JSON", run("bench", "-m", odd, "-p", "2", "-n", "0", "-r", "1", "-o",
         "json"), out=lambda s: json.loads(s)[0]["model_filename"] == odd and
         r"odd\u009b\u007f" in s)
    case("bench csv", run(*bench, "csv"), out=lambda s: len(s.splitlines()) == 7)
    case("bench json", run(*bench, "json"), out=lambda s: [
        (r["n_prompt"], r["n_gen"], r["n_depth"]) for r in json.loads(s)] == [
            (8, 0, 0), (16, 0, 0), (0, 4, 0), (8, 0, 32), (16, 0, 32), (0, 4, 32)])


def run_cases(model):
    raw = ("run", model, "--raw", "-n", "8", "--temp", "0")
    first = case("raw", run(*raw, "the rain", "in"), out="\n$")
    case("prompt from stdin", run(*raw, stdin=b"the rain in"),
         out=lambda s: s.encode() == first.stdout)
    case("prompt from a file", run(*raw, "-f", work("prompt.txt", b"the rain in\n")),
         out=lambda s: s.encode() == first.stdout)
    case("backends agree", run(*raw, "the rain in", "--cpu-mask", "c"))
    case("summary", run(*raw, "-v", "the rain"), 0,
         r"prompt: cached 0, new \d+, .*graphs 1 plans \d+ allocs/token 0 .*fallbacks 0")
    case("json", run(*raw, "--json", "--ignore-eos", "the"),
         out=lambda s: json.loads(s)["n_made"] == 8
         and json.loads(s)["stop"] == "length")
    case("chat", run("run", model, "-n", "4", "Hello", "-sys", "Be brief."))
    case("system without template", run("run", model, "--raw", "-sys", "x", "y"), USAGE, "template")
    case("think", run("run", model, "-n", "1", "--think", "off", "Hello"), 0, "no thinking")
    case("no template", run("run", work("plain.gguf"), "-n", "4", "Hello"), 0, "completed plainly")
    case("strict note", run("run", model, "-n", "1", "--think", "off", "Hello", "--strict"), 78,
         "thinking.*because of --strict")
    case("no utf-8", run("run", model, "-n", "1", stdin=b"ab\xff"), DATA, "not UTF-8 at byte 2")
    case("empty prompt", run("run", model, "--raw", ""), USAGE, "no tokens")
    seeded = ("run", model, "--raw", "-n", "12", "--ignore-eos", "--temp", "2", "--top-k", "0",
              "--min-p", "0", "the")
    draws = [run(*seeded, "--seed", s).stdout for s in ("7", "7", "8")]
    results.append(draws[0] == draws[1] != draws[2])
    case("seed -1", run(*seeded, "--seed", "-1", "-v"), 0, r"seed [1-9]")
    text = run(*seeded, "--seed", "7", "--json")
    word = json.loads(text.stdout)["text"][2:5]
    case("stop", run(*seeded, "--seed", "7", "--json", "--stop", word),
         out=lambda s: word not in json.loads(s)["text"] and json.loads(s)["stop"] == "stop text")


def vocabulary_cases(model):
    """A file with a vocabulary and no tensors."""
    with open(model, "rb") as f:
        data = f.read()
    n_kv, = struct.unpack_from("<Q", data, 16)
    at, sizes = 24, (1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8)

    def skip(at, kind):
        if kind == 8:
            return at + 8 + struct.unpack_from("<Q", data, at)[0]
        if kind == 9:
            kind, n = struct.unpack_from("<IQ", data, at)
            at += 12
            for _ in range(n):
                at = skip(at, kind)
            return at
        return at + sizes[kind]

    for _ in range(n_kv):
        at += 8 + struct.unpack_from("<Q", data, at)[0]
        at = skip(at + 4, struct.unpack_from("<I", data, at)[0])
    vocab = work("vocab.gguf", data[:8] + struct.pack("<Q", 0) + data[16:at])
    case("vocabulary only", run("tokenize", vocab, "-p", "hello", "--ids"), out=r"^\[\d+")
    case("vocabulary is no model", run("run", vocab, "hello"), NOT_FOUND,
         "a vocabulary at most.*--vocab-only")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    model = work("f32.gguf")
    case("dummy", run("dummy", "llama-f32", "-o", model))
    case("dummy by options", run("dummy", "--arch", "llama", "--kind", "f32", "-o",
         work("same.gguf")))
    case("dummy of no architecture", run("dummy", "--arch", "nosuch", "-o", work("x.gguf")), USAGE,
         "there are llama, qwen2")
    with open(model, "rb") as a, open(work("same.gguf"), "rb") as b:
        results.append(a.read() == b.read())
    patched("plain.gguf", (b"tokenizer.chat_template", b"tokenizer.chat_templatX"))
    help_cases()
    usage_cases(model)
    switch_cases(model)
    environment_cases(model)
    file_cases(model)
    long_cases(model)
    fusion_cases(model)
    context_cases(model)
    template_cases(model)
    output_cases(model)
    logits_cases(model)
    good_cases(model)
    run_cases(model)
    vocabulary_cases(model)
    case("tiny", run("run", TINY, "-n", "4", "Hello"))
    print(f"cli: {sum(results)}/{len(results)}")
    shutil.rmtree(WORK)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
