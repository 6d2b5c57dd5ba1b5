#!/usr/bin/env python3
"""Checks the habits of the tree that no compiler checks; python3's standard library only.

    scripts/lint.py [ROOT]      prints "file:line: what; what to do"; exits 1 if anything is wrong

The rules are functions named check_*; each takes a File and yields (line, message) pairs.
"""
import functools
import os
import re
import subprocess
import sys

MAX_FUNCTION, MAX_LONG_FUNCTION, MAX_FILE, MAX_COLUMN = 60, 100, 1500, 100
CODE = (".c", ".h", ".def", ".py", ".sh", ".cmake", ".cu", ".metal")
C_LIKE = (".c", ".h", ".def", ".cu", ".metal")
# A contract that lower modules fulfil: they may include it although it stands above them.
CONTRACTS = ("backend/backend.h",)
# Written in pieces, so that this file passes its own check.
PATHS = re.compile(r"(?<![\w.})*])/" + r"(?:work|tmp|root|home)" + r"(?:/|$|(?=[\"'\s,;:)`]))")
HOSTS = re.compile("|".join(a + r"\." + b for a, b in (
    ("pypi", "org"), ("pythonhosted", "org"), ("debian", "org/debian"), ("huggingface", "co"),
    ("hf", "co/"), ("npmjs", "(?:org|com)"), ("crates", "io"), ("golang", "org/x"))))
# What the library may not call, and the files that are there to do it.
CALLS = re.compile(r"(?<![\w.>])(printf|fprintf|vprintf|puts|putchar|perror|exit|_exit|abort|"
                   r"malloc|calloc|realloc|free|strdup|asprintf|posix_memalign|aligned_alloc|"
                   r"mmap|fopen|open|pread|pwrite|write|pthread_create|clock_gettime)\s*\(")
CALLERS = {
    "src/base/hooks.c": None,  # everything: these are the built-in hooks
    "src/base/cpu.c": {"open"},  # facts of the system
    "src/backend/ref/backend.c": {"mmap"},  # --far: memory that can be made unreadable
}


class File:
    def __init__(self, root, path):
        self.path = path
        self.name = os.path.basename(path)
        self.ext = os.path.splitext(path)[1]
        with open(os.path.join(root, path), "rb") as f:
            self.data = f.read()
        self.text = self.data.decode("utf-8", "replace")
        self.lines = self.text.split("\n")
        self.is_text = b"\0" not in self.data
        self.is_c = self.ext in C_LIKE
        self.is_code = self.ext in CODE or self.name in ("CMakeLists.txt", "Makefile")
        self.is_test = (bool(re.search(r"_(test|fuzz)\.c$", path)) or path.startswith("tests/"))
        self.is_data = path.startswith(("tests/golden/", "tests/fuzz/corpus/"))
        self.in_src = path.startswith("src/")

    @functools.cached_property
    def bare(self):
        """The lines without comments and without what stands in quotes (C only)."""
        def blank(match):
            found = match.group()
            if found[0] in "\"'":
                return found[0] * 2
            return "\n" * found.count("\n") or " "
        pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
        return re.sub(pattern, blank, self.text, flags=re.S).split("\n")


class Tree:
    """The modules as CMakeLists.txt declares them, and the files."""

    def __init__(self, root):
        self.root = root
        self.modules = {}
        with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as f:
            for name, rest in re.findall(r"^sinter_module\((\S+?)(?:\s+(.*))?\)", f.read(), re.M):
                deps = re.search(r"DEPS\s+(.*?)(?:\s+LIBS|$)", rest or "")
                self.modules[name] = deps.group(1).split() if deps else []
        self.files = [File(root, p) for p in self.list_files()]
        self.find_test_headers()

    def list_files(self):
        try:
            out = subprocess.run(["git", "-C", self.root, "ls-files", "-z"], check=True,
                                 capture_output=True).stdout.decode()
            paths = [p for p in out.split("\0") if p]
        except (OSError, subprocess.CalledProcessError):  # an unpacked archive
            paths = []
            for folder, names, files in os.walk(self.root):
                names[:] = [n for n in names if n not in ("build", "models", ".git", "__pycache__")]
                paths += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
        return sorted(p for p in paths if os.path.isfile(os.path.join(self.root, p)))

    def find_test_headers(self):
        """A header below src/ that only tests include is part of the tests."""
        users = {}
        for f in self.files:
            for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', f.text, re.M) if f.is_c else ():
                users.setdefault("src/" + name, []).append(f)
        found = True
        while found:  # such a header may include another one
            found = [f for f in self.files if f.ext == ".h" and f.in_src and not f.is_test
                     and f.path in users and all(u.is_test for u in users[f.path])]
            for f in found:
                f.is_test = True

    def module_of(self, path):
        """The module that src/path belongs to: the longest name that fits."""
        fits = [m for m in self.modules if path.startswith(m + "/")]
        return max(fits, key=len) if fits else None

    @functools.lru_cache(None)
    def may_include(self, module):
        allowed = {module}
        for dep in self.modules[module]:
            allowed |= self.may_include(dep)
        return allowed


def check_text(tree, f):
    """Final newline, tabs, columns, blanks at the end, length of the file."""
    if f.data and not f.is_data and not f.data.endswith(b"\n"):
        yield len(f.lines), "no newline at the end of the file; add it"
    if not f.is_code or f.is_data and not f.name.endswith(".py"):
        return
    if len(f.lines) - 1 > MAX_FILE:
        yield MAX_FILE, f"{len(f.lines) - 1} lines, at most {MAX_FILE}; split the file by purpose"
    for n, line in enumerate(f.lines, 1):
        if len(line) > MAX_COLUMN:
            yield n, f"{len(line)} columns, at most {MAX_COLUMN}; break the line"
        if "\t" in line and f.name != "Makefile":
            yield n, "a tab; use four blanks"
        if line != line.rstrip():
            yield n, "blanks at the end of the line; remove them"


def check_machine(tree, f):
    """No path or registry of the machine that the tree was written on."""
    for n, line in enumerate(f.lines, 1):
        if PATHS.search(line):
            yield n, "a path of a machine; use TEST_BINARY_DIR, a variable or a relative path"
        if HOSTS.search(line):
            yield n, "a registry's host; name the package only"


def check_includes(tree, f):
    """A module includes what it declares; programs and examples include the public header."""
    if not f.is_c:
        return
    for n, line in enumerate(f.lines, 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not found:
            continue
        name = found.group(1)
        target = tree.module_of(name)
        if f.path.startswith(("tools/", "examples/", "server/")):
            if target or name.startswith(".."):
                yield n, f"includes {name}; a program includes sinter.h only"
        elif f.in_src:
            own = tree.module_of(f.path[len("src/"):])
            if own is None:
                yield n, "stands in no module; declare it with sinter_module in CMakeLists.txt"
            elif name == "sinter.h" or (f.is_test and os.path.exists(
                    os.path.join(tree.root, "tests", name))):
                pass
            elif target is None:
                yield n, f'includes "{name}"; write it as "module/file.h"'
            elif target != own and name.endswith("_impl.h"):
                yield n, f"includes {name}, which is private to {target}; use its public header"
            elif target not in tree.may_include(own) and name not in CONTRACTS:
                yield n, (f"{own} includes {name}, but {target} is not below it; turn the "
                          "dependency round, or declare it in CMakeLists.txt")


def check_functions(tree, f):
    """Functions of at most 60 lines; 100 with a comment "long: reason"."""
    if f.ext not in (".c", ".h", ".cu", ".metal"):
        return
    start = None
    for n, line in enumerate(f.lines, 1):
        if line == "{":
            start = n - 1
            while start > 1 and f.lines[start - 2].strip() and not re.search(
                    r"[;}]$|\*/$|^#|^/\*", f.lines[start - 2]):
                start -= 1
            head = start - 1
            while head > 0 and re.match(r"\s*(/\*|\*|//)|.*\*/$", f.lines[head - 1]):
                head -= 1
        elif line.startswith("}") and start:
            length = n - start + 1
            reason = any("long: " in x for x in f.lines[head:start + 2])
            limit = MAX_LONG_FUNCTION if reason else MAX_FUNCTION
            if length > limit:
                yield start, (f"a function of {length} lines, at most {limit}; split it"
                              + ("" if reason else ' or say why above it: "/* long: reason */"'))
            start = None


def check_switches(tree, f):
    """No default: over our own enums; only owners switch over ops and quant types."""
    if not f.in_src or not f.is_c or f.is_test:
        return
    for n, (line, bare) in enumerate(zip(f.lines, f.bare), 1):
        if re.search(r"\bdefault\s*:", bare) and not re.search(r"/\*|//", line):
            yield n, ("default: hides a new enum value; list the cases (or say on the line why the "
                      "values are not ours)")
        for prefix, owner in (("OP", "src/graph/"), ("QUANT", "src/quant/")):
            if re.search(rf"\bcase\s+{prefix}_", bare) and not f.path.startswith(owner):
                yield n, f"a switch over {prefix}_ outside {owner}; put a flag into its table"


def check_calls(tree, f):
    """The library asks the system through the host's hooks, and options.c reads the environment."""
    if not f.in_src or not f.is_c or f.is_test:
        return
    for n, bare in enumerate(f.bare, 1):
        if re.search(r"\b(secure_)?getenv\b", bare) and f.path != "src/base/options.c":
            yield n, "getenv; every switch is a row of src/base/options.def"
        found = CALLS.search(bare)
        allowed = CALLERS.get(f.path, ())
        if not found or allowed is None or found.group(1) in allowed:
            continue
        if not re.match(r"(static|[a-z_]+ \*?\w+\()", bare):  # our own function of that name
            yield n, f"{found.group(1)}(); the library uses src/base/host.h and never prints"


def check_kernels(tree, f):
    """A backend's kernel is named in the file that defines it and in its list, nowhere else."""
    if not re.match(r"src/backend/\w+/list\.c$", f.path):
        return
    folder = os.path.dirname(f.path) + "/"
    for n, line in enumerate(f.lines, 1):
        found = re.match(r'\s*\{\s*"\w+"\s*,\s*(\w+)\s*,', line)
        if not found or found.group(1) == "NULL":
            continue
        kernel = found.group(1)
        word = re.compile(rf"\b{kernel}\b")
        named = [g.path for g in tree.files if g.is_c and not g.is_test and g.path != f.path
                 and any(word.search(x) for x in g.bare)]
        if len(named) != 1:
            yield n, (f"{kernel} is named in {', '.join(named) or 'no file'}; it must be defined "
                      "in exactly one file beside the list")
        elif not named[0].startswith(folder):
            yield n, f"{kernel} is defined in {named[0]}; move it below {folder}"


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]


def main(args):
    root = args[1] if len(args) > 1 else os.path.join(os.path.dirname(__file__), "..")
    tree = Tree(os.path.abspath(root))
    n_file, problems = 0, []
    for f in tree.files:
        if not f.is_text:
            continue
        n_file += 1
        for check in CHECKS:
            problems += [(f.path, n, message) for n, message in check(tree, f)]
    for path, n, message in problems:
        print(f"{path}:{n}: {message}")
    print(f"lint: {n_file} files, {len(problems)} problems")
    return 1 if problems or not n_file else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
