"""bench/peers.py with two stand-ins: medians of ratios, a peer that dies, what is recorded."""
import csv
import os
import shutil
import stat
import subprocess
import sys

ROOT = os.path.join(os.environ["SINTER_BINARY"], "peers_test.tmp")
PEERS = os.path.join(os.environ["SINTER_SOURCE"], "bench", "peers.py")
# Speeds come one after another out of a file; "die" ends the program by a signal.
STAND_IN = """#!/bin/sh
case "$*" in
*--version*) echo "version: 7 (abc)"; exit ;;
dummy*) while [ "$1" != -o ]; do shift; done; echo made >"$2"; exit ;;
esac
speed=$(head -n 1 "$0.speeds")
sed -i 1d "$0.speeds"
[ "$speed" != die ] || kill -ILL $$
row='"avg_ts": '$speed', "read_share": 0.5, "int8_share": 0.25'
echo "[{\\"n_prompt\\": 512, \\"n_gen\\": 0, $row}, {\\"n_prompt\\": 0, \\"n_gen\\": 64, $row}]"
"""


def stand_in(name, speeds):
    path = os.path.join(ROOT, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(STAND_IN)
    with open(path + ".speeds", "w", encoding="utf-8") as f:
        f.writelines(f"{s}\n" for s in speeds)
    os.chmod(path, stat.S_IRWXU)
    return path


def peers(ours, theirs, *more):
    table = os.path.join(ROOT, "peers.csv")
    done = subprocess.run(
        [sys.executable, "-B", PEERS, "--sinter", stand_in("sinter", ours), "--llama-bench",
         stand_in("peer", theirs), "--models", ROOT, "--work", ROOT, "--only", "qwen3", "--csv",
         table, "--record", "--rounds", "3", *more], capture_output=True, text=True, check=False)
    assert not [f for f in os.listdir(ROOT) if f.endswith(".gguf")], "a random model was left"
    rows = []
    if os.path.exists(table):
        with open(table, encoding="utf-8", newline="") as f:
            rows = list(csv.DictReader(f))
        os.remove(table)
    return done, rows


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(ROOT)
    cases = [
        # per round 2.0, 0.5, 1.2: neither the mean nor the ratio of the medians
        ("ratio", [20, 30, 48], [10, 60, 40], 0, "1.200", None),
        ("slower", [9, 9, 9], [10, 10, 10], 1, "0.900", None),
        ("bar", [9, 9, 9], [10, 10, 10], 0, "0.900", ("--at-least", "0.9")),
        ("dies once", [10, 10, 10], [10, "die", 10, 10], 0, "1.000", None),
        ("dies", [10] * 3, ["die"] * 9, 1, None, None),
    ]
    n_ok = 0
    for name, ours, theirs, code, ratio, more in cases:
        done, rows = peers(ours, theirs, *(more or ()))
        ok = done.returncode == code and len(rows) == (2 if ratio else 0)
        ok &= all(r["ratio"] == ratio and r["peer"] == "llama.cpp 7 (abc)" for r in rows)
        ok &= [(r["test"], r["share"]) for r in rows] in (
            [], [("pp512", "0.250"), ("tg64", "0.500")])
        ok &= ("signal" in done.stdout + done.stderr) == name.startswith("dies")
        n_ok += ok
        if not ok:
            print(f"{name}: exit code {done.returncode}, {rows}\n{done.stdout}{done.stderr}")
    shutil.rmtree(ROOT)
    print(f"peers: {n_ok}/{len(cases)}")
    return 0 if n_ok == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
