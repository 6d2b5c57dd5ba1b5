#!/usr/bin/env python3
"""sinter and llama.cpp's llama-bench side by side, prompt (pp512) and generation (tg64).

    bench/peers.py --sinter FILE --llama-bench FILE --models FOLDER --work FOLDER [--record]

Each round runs both programs once per model, in turns first, so that what the machine does
meanwhile hits both; a cell's ratio is the median of its per-round ratios. Two models are real
files, two have the shapes of real ones with random weights and are written to the work folder,
then removed. Prints a table; --record also appends its rows to bench/peers.csv. Exits 1 if a cell
is below --at-least. Python's standard library only. bench/README.md says how to read the figures.
"""
import argparse
import csv
import datetime
import json
import os
import re
import statistics
import subprocess
import sys

REAL = ("SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m.Q4_K_M.gguf")
SHAPES = ("qwen3-0.6b", "llama-3.2-1b")
TRIES = 4  # of one measurement: a peer that dies by a signal is started again
COLUMNS = ("date", "machine", "threads", "rounds", "model", "test", "sinter_t_s", "peer_t_s",
           "ratio", "share", "share_of", "peer", "sinter")


class Failed(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


class Program:
    """One of the two programs, and what is known of it."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        self.version = ""
        self.deaths = 0

    def run(self, *args, with_stderr=False):
        """Its stdout; a death by a signal is counted and tried again."""
        for left in reversed(range(TRIES)):
            done = subprocess.run([self.path, *args], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout + (done.stderr if with_stderr else "")
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            if done.returncode > 0:
                raise Failed(f"{self.name} {' '.join(args)}: exit code {done.returncode}: {last}")
            self.deaths += 1
            say(f"peers: {self.name} was ended by signal {-done.returncode} ({last}); "
                f"{left} tries left")
        raise Failed(f"{self.name} {' '.join(args)}: ended by a signal {TRIES} times")

    def ask_version(self):
        """Its own words; those of llama-bench are "version: 1234 (abcdef)" among others."""
        text = self.run("--version", with_stderr=True)
        found = re.search(r"version: *(.*)", text)
        self.version = f"llama.cpp {found.group(1)}" if found else text.strip().split("\n")[-1]

    def bench(self, model, threads):
        """{"pp512": row, "tg64": row} of one run."""
        verb = ["bench"] if self.name == "sinter" else []
        text = self.run(*verb, "-m", model, "-t", str(threads), "-p", "512", "-n", "64",
                        "-b", "2048", "-ub", "512", "-r", "1", "-ctk", "f16", "-ctv", "f16",
                        "-o", "json")
        try:
            rows = json.loads(text)
            named = {f"pp{r['n_prompt']}" if r["n_prompt"] else f"tg{r['n_gen']}": r for r in rows}
            found = {test: {**named[test], "t_s": float(named[test]["avg_ts"])}
                     for test in ("pp512", "tg64")}
        except (ValueError, KeyError, TypeError) as e:
            raise Failed(f"{self.name}: its figures of {model} are not understood: {e!r}") from e
        return found


def machine():
    """The CPU as the system names it, with family and model: virtual machines hide the name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            facts = dict(re.findall(r"^([\w ]+?)\s*:\s*(.*)$", f.read(), re.M))
    except OSError:
        facts = {}
    name = facts.get("model name", "unknown CPU")
    more = ", ".join(f"{k} {facts[k]}" for k in ("cpu family", "model") if k in facts)
    return f"{name} ({more})" if more else name


def share(test, row):
    """How much of what the machine can do the run took: of its int8 rate in prompts, of its read
    bandwidth in generation; None where the program did not say."""
    key = "int8_share" if test == "pp512" else "read_share"
    value = row.get(key)
    return float(value) if value else None


def models_of(args, sinter):
    """(name, path, made by us) of each model; one that is missing is said and left out."""
    for name in REAL:
        path = os.path.join(args.models, name)
        if args.only and args.only not in name:
            continue
        if os.path.exists(path):
            yield name.rsplit(".gguf", 1)[0], path, False
        else:
            say(f"peers: SKIPPED {name}: it is not in {args.models}; make fetch gets it")
    for name in SHAPES:
        if args.only and args.only not in name:
            continue
        path = os.path.join(args.work, f"{name}.q4_0.gguf")
        say(f"peers: writing {path}")
        sinter.run("dummy", "--like", name, "--type", "q4_0", "-o", path)
        yield f"{name} q4_0 (random)", path, True


def measure(args, sinter, peer, name, path):
    """The cells of one model: {test: {"ours": [t/s], "peer": [t/s], "ratio": [], "share": []}}"""
    cells = {t: {"ours": [], "peer": [], "ratio": [], "share": []} for t in ("pp512", "tg64")}
    for n in range(args.rounds):
        first, second = (sinter, peer) if n % 2 == 0 else (peer, sinter)
        got = {first: first.bench(path, args.threads), second: second.bench(path, args.threads)}
        for test, cell in cells.items():
            ours, theirs = got[sinter][test], got[peer][test]["t_s"]
            cell["ours"].append(ours["t_s"])
            cell["peer"].append(theirs)
            cell["ratio"].append(ours["t_s"] / theirs)
            part = share(test, ours)
            if part is not None:
                cell["share"].append(part)
        say(f"peers: {name}, round {n + 1} of {args.rounds}: " + ", ".join(
            f"{t} {c['ours'][-1]:.1f} : {c['peer'][-1]:.1f}" for t, c in cells.items()))
    return cells


def table(rows):
    head = ("model", "test", "sinter t/s", "llama.cpp t/s", "ratio", "share")
    lines = [head]
    for r in rows:
        part = "-" if r["share"] is None else f"{100 * r['share']:.0f} % of {r['share_of']}"
        lines.append((r["model"], r["test"], f"{r['sinter_t_s']:.1f}", f"{r['peer_t_s']:.1f}",
                      f"{r['ratio']:.2f}", part))
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for n, line in enumerate(lines):
        print("| " + " | ".join(c.ljust(w) if i in (0, 1, 5) else c.rjust(w)
                                for i, (c, w) in enumerate(zip(line, width))) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 2) for w in width) + "|")


def record(path, rows):
    new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        if new:
            out.writeheader()
        for r in rows:
            text = {k: f"{r[k]:.3f}" if isinstance(r[k], float) else r[k] for k in COLUMNS}
            out.writerow({k: "" if v is None else v for k, v in text.items()})
    print(f"peers: {len(rows)} rows appended to {os.path.relpath(path)}")


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--sinter", required=True, help="sinter's program")
    p.add_argument("--llama-bench", required=True, help="built for this machine")
    p.add_argument("--models", required=True, help="folder of the real models")
    p.add_argument("--work", required=True, help="folder that the random models are written to")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--only", metavar="TEXT", help="models whose name holds TEXT")
    p.add_argument("--at-least", type=float, default=1.0, metavar="RATIO")
    p.add_argument("--record", action="store_true", help="append to --csv")
    p.add_argument("--csv", metavar="FILE", help="bench/peers.csv unless given",
                   default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers.csv"))
    p.add_argument("--peer-version", metavar="TEXT", help="where the peer does not know its own")
    return p.parse_args()


def main():
    args = options()
    sinter, peer = Program("sinter", args.sinter), Program("peer", args.llama_bench)
    os.makedirs(args.work, exist_ok=True)
    rows, missing = [], []
    sinter.ask_version()
    peer.ask_version()
    peer.version = args.peer_version or peer.version
    facts = {"date": datetime.date.today().isoformat(), "machine": machine(),
             "threads": args.threads, "rounds": args.rounds, "sinter": sinter.version}
    for name, path, made in models_of(args, sinter):
        try:
            cells = measure(args, sinter, peer, name, path)
        except Failed as e:
            say(f"peers: {name} has no figures: {e}")
            missing.append(name)
            continue
        finally:
            if made:
                os.remove(path)
        for test, c in cells.items():
            rows.append({**facts, "model": name, "test": test, "peer": peer.version,
                         "sinter_t_s": statistics.median(c["ours"]),
                         "peer_t_s": statistics.median(c["peer"]),
                         "ratio": statistics.median(c["ratio"]),
                         "share": statistics.median(c["share"]) if c["share"] else None,
                         "share_of": "int8 rate" if test == "pp512" else "read bandwidth"})
    if not rows:
        raise Failed("nothing was measured")
    print(f"{facts['machine']}, {args.threads} threads, {args.rounds} rounds, "
          f"{sinter.version} against {peer.version}")
    table(rows)
    good = sum(r["ratio"] >= args.at_least for r in rows)
    for p in (sinter, peer):
        if p.deaths:
            print(f"peers: {p.name} was ended by a signal {p.deaths} times and started again")
    if missing:
        print(f"peers: without figures: {', '.join(missing)}")
    if args.record:
        record(args.csv, rows)
    print(f"peers at ratio {args.at_least:.2f} or more: {good}/{len(rows) + 2 * len(missing)}")
    return 0 if good == len(rows) and not missing else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError) as error:
        sys.exit(f"peers: {error}")
