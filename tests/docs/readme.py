"""The console examples of README.md: "$ command", then what it prints on both streams.

"..." in a line stands for any text, "..." as a line for any lines. Examples run in order in a
folder where models/ is the folder of the real models; the two streams may come in either order.
"""
import os
import re
import subprocess
import tempfile

SOURCE, PROGRAM = os.environ["SINTER_SOURCE"], os.environ["SINTER_PROGRAM"]
MODELS = os.environ["SINTER_MODELS"]


def examples():
    """(line, command, expected output) of each example."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        lines = f.read().split("\n")
    inside, command, at, expected = False, None, 0, []
    for n, line in enumerate([*lines, "```"], 1):
        starts = inside and line.startswith("$ ")
        if command and (starts or line.startswith("```")):
            yield at, command, expected
            command = None
        if line.startswith("```"):
            inside = line == "```console"
        elif starts:
            command, at, expected = line[2:], n, []
        elif inside:
            expected.append(line)


def pattern(expected):
    """The regular expression of an expected output; blank lines at its end do not count."""
    text = ""
    for line in expected:
        if line == "...":
            text += r"(?:.*\n)*?"
        else:
            text += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return text + r"\s*"


def run(folder, command):
    env = {**os.environ, "PATH": os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"]}
    for name in [n for n in env if n.startswith("SINTER_")]:
        del env[name]
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=600, check=False)
    texts = [s.decode("utf-8", "replace") for s in (done.stdout, done.stderr)]
    return ["".join(t if not t or t.endswith("\n") else t + "\n" for t in order)
            for order in (texts, texts[::-1])]


def verbs():
    """(row of README.md that must be there, is it?) of each verb, as verbs.def has it."""
    with open(os.path.join(SOURCE, "tools", "sinter", "verbs.def"), encoding="utf-8") as f:
        table = re.findall(r'^VERB\((\w+), "(.*)"\)$', f.read(), re.M)
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        rows = [line for line in f.read().split("\n") if line.startswith("| `sinter ")]
    wanted = [f"| `sinter {name}` | {text} |" for name, text in table]
    return [(row, row in wanted and row in rows) for row in {**dict.fromkeys(wanted),
                                                            **dict.fromkeys(rows)}]


def main(real):
    n_ok = n_all = n_skipped = 0
    for row, good in [] if real else verbs():
        n_all += 1
        n_ok += good
        if not good:
            print(f"README.md and tools/sinter/verbs.def do not agree: {row}")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(MODELS), os.path.join(folder, "models"))
        for at, command, expected in examples():
            needed = re.findall(r"models/(\S+\.gguf)", command)
            if bool(needed) != real:
                continue
            if not all(os.path.exists(os.path.join(MODELS, name)) for name in needed):
                n_skipped += 1
                continue
            n_all += 1
            got = run(folder, command)
            if any(re.fullmatch(pattern(expected), text) for text in got):
                n_ok += 1
                continue
            print(f"README.md:{at}: $ {command}\nexpected:\n" + "\n".join(expected) +
                  f"\nbut it printed:\n{got[0]}")
    if n_skipped:
        print(f"SKIPPED: {n_skipped} examples, their model is not in {MODELS}")
    print(f"readme: {n_ok}/{n_all}")
    if n_all == 0:
        return 77 if n_skipped else 1
    return 0 if n_ok == n_all else 1
