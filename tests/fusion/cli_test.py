"""sinter fusion check and sinter verify as a program: exit codes, and what is printed."""
import os
import subprocess
import sys
import tempfile

PROGRAM = os.environ["SINTER_PROGRAM"]
SOURCE = os.environ["SINTER_SOURCE"]
for name in [n for n in os.environ if n.startswith("SINTER_")]:
    del os.environ[name]


def run(*args):
    done = subprocess.run([PROGRAM, *args], cwd=SOURCE, capture_output=True, text=True,
                          timeout=600, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def main():
    n_ok = n_all = 0

    def expect(what, got, code, out="", err=""):
        nonlocal n_ok, n_all
        n_all += 1
        ok = got[0] == code and out in got[1] and err in got[2]
        n_ok += ok
        if not ok:
            print(f"{what}: exit code {got[0]}, wanted {code}\n{got[1]}{got[2]}")

    check = ("fusion", "check", "--model", "llama-f32")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder
        expect("passes", run(*check), 0, out="fusion: ")
        expect("on ref", run(*check, "--backend", "ref"), 0, out="fusion: ")
        expect("label off", run(*check, "--disable", "MATMUL*3"), 1, out="did not happen")
        expect("need ignored", run(*check, "--ignore-need", "MATMUL+ADD.same_row:Y,R"), 0,
               out="fusion: ")
        expect("no such label", run(*check, "--disable", "MATMUL*9"), 2, err="there is no fusion")
        expect("no backend", run(*check, "--backend", "abacus"), 69, out="SKIPPED")
        expect("no baseline", run(*check, "--baseline", folder + "/none.csv"), 66)
        expect("no model", run("fusion", "check", "--model", folder + "/none.gguf"), 66,
               err="llama-f32")
        names = run("fusion", "check", "--list")
        expect("models", names, 0, out="llama-f32\n")
        expect("no such part", run("fusion", "chek"), 2, err="check")
        left = os.listdir(folder)
        expect("folder left clean", (len(left), "", str(left)), 0)
        model = folder + "/model.gguf"
        expect("dummy", run("dummy", "llama-f32", "-o", model), 0)
        expect("verify", run("verify", model), 0, out="unfused")
        expect("exact", run("verify", model, "--exact", "-t", "2"), 0, out="same bits: 16/16\n")
        expect("exact on one thread", run("verify", model, "--exact", "-t", "1"),
               2, err="--threads 2")
        expect("verify nothing", run("verify"), 2)
    print(f"fusion and verify as programs: {n_ok}/{n_all}")
    return n_ok != n_all


if __name__ == "__main__":
    sys.exit(main())
