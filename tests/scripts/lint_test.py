"""Every rule of scripts/lint.py fires on a small tree that breaks it, and only there."""
import contextlib
import importlib.util
import io
import os
import shutil

ROOT = os.path.join(os.environ["SINTER_BINARY"], "lint_test.tmp")
SPEC = importlib.util.spec_from_file_location(
    "lint", os.path.join(os.environ["SINTER_SOURCE"], "scripts", "lint.py"))
LINT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(LINT)
# Without git the tree is walked, whatever repository the build folder stands in.
os.environ["GIT_DIR"] = os.path.join(ROOT, "none")
LISTS = "sinter_module(base)\nsinter_module(low DEPS base)\nsinter_module(high DEPS low LIBS x)\n" \
        "sinter_module(backend/cpu DEPS low)\n"
LIST = '#include "low/l.h"\n' \
       'void cpu_add(void);\nconst int x[] = {\n    { "add", cpu_add, 1 },\n};\n'
ADD = "void cpu_add(void);\nvoid cpu_add(void)\n{\n}\n"
GOOD = {
    "CMakeLists.txt": LISTS,
    "src/base/b.h": "#define X 1\n",
    "src/low/l.h": '#include "base/b.h"\n',
    "src/high/h.c": '#include "low/l.h"\n#include "base/b.h"\n/* default: printf( */\n',
    "src/high/h_test.c": '#include "high/h.h"\nint main(void)\n{\n    printf("x");\n}\n',
    "src/high/h.h": "#define Y 1\n",
    "src/backend/cpu/list.c": LIST,
    "src/backend/cpu/add.c": ADD,
    "tools/t.c": '#include "sinter.h"\n#include "own.h"\n',
    "README.md": "long lines are fine here " * 10 + "\n",
}
LONG = "int f(void)\n{\n" + "    x();\n" * 59 + "}\n"
# what it breaks: (file, its text, what the problem must say)
BAD = [
    ("src/low/l.h", '#include "high/h.h"\n', "low includes high/h.h, but high is not below it"),
    ("src/base/b.h", '#include "low/l.h"\n', "base includes low/l.h"),
    ("src/backend/cpu/add.c", ADD + '#include "high/h.h"\n', "backend/cpu includes high/h.h"),
    ("src/high/h.c", '#include "h.h"\n', 'write it as "module/file.h"'),
    ("src/high/h.c", '#include "low/l_impl.h"\n', "private to low"),
    ("src/stray/s.c", '#include "low/l.h"\n', "stands in no module"),
    ("tools/t.c", '#include "base/b.h"\n', "includes sinter.h only"),
    ("src/high/h.c", LONG, "a function of 62 lines, at most 60"),
    ("src/high/h.c", "/* long: a table in words */\n" + LONG[:-2] + "    y();\n" * 40 + "}\n",
     "a function of 102 lines, at most 100"),
    ("src/high/h.c", "x\n" * 1501, "1501 lines, at most 1500"),
    ("src/high/h.c", "x" * 101 + "\n", "101 columns"),
    ("src/high/h.c", "\tx\n", "a tab"),
    ("src/high/h.c", "x \n", "blanks at the end"),
    ("src/high/h.c", "x", "no newline at the end"),
    ("src/high/h.c", "    default:\n", "default: hides"),
    ("src/high/h.c", "    case OP_ADD:\n", "a switch over OP_ outside src/graph/"),
    ("src/high/h.c", "    case QUANT_Q4_0:\n", "a switch over QUANT_ outside src/quant/"),
    ("src/high/h.c", "    x = getenv(y);\n", "getenv"),
    ("src/high/h.c", "    printf(y);\n", "never prints"),
    ("src/high/h.c", "    x = malloc(3);\n", "never prints"),
    ("src/high/h.c", "    exit(3);\n", "never prints"),
    ("README.md", "see /wo" + "rk/x\n", "a path of a machine"),
    ("README.md", "cd /ro" + "ot\n", "a path of a machine"),
    ("tests/x.c", '"/t' + 'mp/x"\n', "a path of a machine"),
    ("README.md", "from pypi" + ".org\n", "a registry's host"),
    ("src/high/h.c", "extern int cpu_add;\n",
     "cpu_add is named in src/backend/cpu/add.c, src/high/h.c"),
    ("src/backend/cpu/add.c", "int y;\n", "cpu_add is named in no file"),
]


def lint(files):
    """The exit code and the output; in this process, because python starts slowly."""
    shutil.rmtree(ROOT, ignore_errors=True)
    for path, text in files.items():
        full = os.path.join(ROOT, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = LINT.main(["lint.py", ROOT])
    return code, out.getvalue()


def main():
    code, text = lint(GOOD)
    assert code == 0 and "0 problems" in text, text
    for path, bad, says in BAD:
        code, text = lint({**GOOD, path: bad})
        assert code == 1 and says in text, f"{path}: expected {says!r}, got:\n{text}"
        assert "1 problems" in text, f"{says!r} brought others:\n{text}"
    print(f"lint rules: {len(BAD)}/{len(BAD)}")


main()
