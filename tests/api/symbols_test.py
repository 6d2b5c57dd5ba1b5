"""The shared library exports exactly what sinter.h declares, and has no mutable globals."""
import glob
import os
import re
import subprocess

SOURCE, BINARY = os.environ["SINTER_SOURCE"], os.environ["SINTER_BINARY"]


def out(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    library = os.path.join(BINARY, "libsinter.so")
    with open(os.path.join(SOURCE, "include", "sinter.h"), encoding="utf-8") as f:
        header = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    declared = set(re.findall(r"SINTER_(?:API|CALL)\s+[^;{}#]*?\b(sinter_\w+)\s*\(", header))
    exported = {line.split()[-1].split("@")[0]
                for line in out("nm", "-D", "--defined-only", library).splitlines()}
    exported -= {"_init", "_fini", "__bss_start", "_edata", "_end"}
    assert declared, "no function was found in sinter.h"
    assert declared == exported, (f"declared but not exported: {sorted(declared - exported)}; "
                                  f"exported but not declared: {sorted(exported - declared)}")
    print(f"exported functions: {len(exported)}/{len(declared)}")

    # Data that may change at run time: what stands in .data or .bss and is ours. Sanitizers add
    # their own and move ours about, so they are not asked.
    with open(os.path.join(BINARY, "CMakeCache.txt"), encoding="utf-8") as f:
        if re.search(r"^SINTER_SANITIZE:\w+=.+$", f.read(), re.M):
            return
    objects = glob.glob(os.path.join(BINARY, "libm_*.a"))
    bad = []
    for path in objects:
        for line in out("objdump", "-t", path).splitlines():
            found = re.match(r"\S+ [lgu!].{5}O (\.t?(?:data|bss)(?:\.(?!rel\.ro)\S*)?|\*COM\*)"
                             r"\s+\S+ (?:\.hidden )?(\S+)", line)
            if found:
                bad.append(f"{os.path.basename(path)}: {found.group(2)}")
    assert objects and not bad, f"mutable globals: {bad}"
    print(f"mutable globals: 0 in {len(objects)} modules")


main()
