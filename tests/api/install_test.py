"""Installs into a folder and builds every program of examples/ with what pkg-config says there."""
import glob
import os
import shutil
import subprocess
import sys

SOURCE, BINARY = os.environ["SINTER_SOURCE"], os.environ["SINTER_BINARY"]
PREFIX = os.path.join(BINARY, "install_test.tmp")


def out(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def main():
    with open(os.path.join(BINARY, "CMakeCache.txt"), encoding="utf-8") as f:
        if "SINTER_SANITIZE:STRING=\n" not in f.read():
            print("not run: an installed library with a sanitizer needs its runtime")
            return
    shutil.rmtree(PREFIX, ignore_errors=True)
    out("cmake", "--install", BINARY, "--prefix", PREFIX)
    folder = os.path.dirname(glob.glob(os.path.join(PREFIX, "**", "sinter.pc"), recursive=True)[0])
    library = os.path.dirname(folder)
    env = {**os.environ, "PKG_CONFIG_PATH": folder}
    asked = ["pkg-config", "--cflags", "--libs"]  # the prefix is not the one at configuration
    shared = out(*asked, "sinter", env=env).split()
    static = out(*asked, "--static", "sinter", env=env).split()
    at = static.index("-lsinter")
    static[at:at + 1] = ["-Wl,-Bstatic", "-lsinter", "-Wl,-Bdynamic"]
    examples = sorted(glob.glob(os.path.join(SOURCE, "examples", "*.c")))
    assert examples, "examples/ holds no program"
    version = out(os.path.join(PREFIX, "bin", "sinter"), "--version")
    assert "sinter" in version, version
    for path in examples:
        for kind, flags in (("shared", shared), ("static", static)):
            program = os.path.join(PREFIX, kind + "_" + os.path.basename(path)[:-2])
            out(os.environ["CC"], "-std=c17", "-Wall", "-Wextra", "-Werror", path, "-o", program,
                *flags, f"-Wl,-rpath,{library}")
            needed = "libsinter.so" in out("ldd", program)
            assert needed == (kind == "shared"), f"{program} is not linked as {kind}"
    shutil.rmtree(PREFIX)
    print(f"examples built against the installed library: {2 * len(examples)}/{2 * len(examples)}")


if __name__ == "__main__":
    sys.exit(main())
