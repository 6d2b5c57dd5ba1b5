"""Records what jinja2 gives for small templates of every part of the language. Run by hand, never
in CI; needs jinja2.

    python make_jinja_cases.py

Reads jinja_cases.txt and writes jinja_cases.jsonl beside this file: one case per line with source,
vars and now, and either text (what is rendered), error (what raise_exception said) or fails (any
other exception).
"""
import datetime
import itertools
import json
import os
import re

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = "2024-02-29T15:04:05"


class Generation(jinja2.ext.Extension):
    """A call block, as in transformers: the body is a function of its own."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime.fromisoformat(NOW).strftime
    return env


VARS = {
    "s": "Hello World", "e": "", "u": "Grüße, 日本 👍", "n": 42, "z": 0, "neg": -7, "f": 3.5,
    "t": True, "no": False, "nil": None, "l": [3, 1, 2], "le": [], "d": {"b": 1, "a": "x"},
    "de": {}, "ls": ["b", "A", "c", "a"], "nest": {"a": {"b": [1, {"c": "deep"}]}},
    "users": [{"name": "Zoe", "age": 30, "ok": True}, {"name": "adam", "age": 25},
              {"name": "Bob", "age": 30, "ok": False}],
    "m": [{"role": "system", "content": " sys "}, {"role": "user", "content": "hi"},
          {"role": "assistant", "content": None, "tool_calls": [
              {"function": {"name": "f", "arguments": {"x": 1.0, "y": [None, True]}}}]}],
    "text": "one\n  two\n\nthree\r\nfour", "html": "<a href=\"x\">'&'</a>", "sp": "  a b  c ",
    "ws": " \t\n\u00a0\u3000x\u2003\n", "q": "it's \"q\" \\ \n\t\r\x01\x7f\u00ad\u2028é😀",
    "items": [1, 2], "num": "42", "keys": {"items": 1, "get": 2, "x-y": 3, "0": "zero"},
}

# One template per line.
with open(os.path.join(HERE, "jinja_cases.txt"), encoding="utf-8") as f:
    PLAIN = f.read().strip("\n").split("\n")

# Templates of several lines.
BLOCKS = [
    "  {% if t %}\n    a\n  {% endif %}\n  b\n",
    "  {%- if t -%}\n    a\n  {%- endif -%}\n  b\n",
    "  {%+ if t %}\n    a\n  {%+ endif %}\n  b\n",
    "{% if t +%}\n a\n{% endif +%}\nb\n\n",
    "a\n{{- n }}\nb {{ n -}}\n c\n",
    "   {{ n }}\n\t{% set x = 1 %}\n\tx",
    "{% if t %}\n\na{% endif %}\n\nb",
    "a{% if t %}\n{% endif %}\nb",
    "  {# c #}\nx\n  a {# c #}\nx\n\n\n",
    "{{ n }}\n\nx\n",
    "{{ n\n}}\n",
    "{# multi\nline #}\nx",
    "{% raw %}\nx\n  {% endraw %}\ny",
    "  {% raw %}  x\n  {%- endraw %}  y",
    "{% raw -%}\n  {{ x }}\n{%- endraw %}",
    "{% filter indent(2) %}a\nb{% endfilter %}",
    "a\r\nb\rc\n{{ 'x\r\ny'|length }}\r\n",
    "{{ 'a\\\nb' }}",
    "\n\n{% if t %}\n  {% for i in l %}\n    {{ i }}\n  {% endfor %}\n{% endif %}\n\n",
    "{%- for i in l %}\n{{ i }}\n{%- endfor %}\n",
    "a \u00a0\u3000{%- if t %} b{% endif -%}\u2003 c",
    "\u00a0{% if t %}x{% endif %}",
    "x\n \x0b\x1c{% if t %}y{% endif %}",
    "{%if t%}a{%endif%}{%-if t-%} b {%-endif-%}{{n}}{{-n-}}",
    "{% set a = [\n 1,\n 2\n] %}{{ a }}",
    "{{ {\n'a': 1\n} }}",
    "{#- a -#}\n\n x {#- b #}\n y",
    "{{ '\n' }}{{ \"a\nb\" }}",
    "{% if t %}{% if t %}\n x\n {% endif %}\n {% endif %}\n",
    "",
    "\n",
    "\n\n",
]

# --- grids ----------------------------------------------------------------------------------

VALUES = ["missing", "nil", "t", "z", "n", "f", "e", "s", "u", "le", "l", "d", "(1, 'a')",
          "range(2)", "d.items()", "namespace(a=1)"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number",
         "string", "mapping", "sequence", "iterable", "callable", "lower", "upper", "escaped",
         "odd", "even"]
FILTERS = ["string", "length", "list", "first", "last", "join('-')", "upper", "trim", "int",
           "float", "tojson", "default('D')", "default('D', true)", "e", "title", "capitalize",
           "abs", "sum", "sort", "unique|list", "reverse|list", "items|list", "dictsort",
           "replace('l', 'L')", "map('string')|list", "select|list", "min", "wordcount"]
METHODS = [
    "upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip()",
    "strip('a ')", "lstrip(' ')", "rstrip('c ')", "strip(none)", "strip('')", "split()",
    "split(' ')", "split('a')", "split(none, 1)", "split(' ', 1)", "split(maxsplit=1)",
    "split(sep='b', maxsplit=1)", "rsplit()", "rsplit(' ', 1)", "rsplit(none, 1)", "split(' ', 0)",
    "split(none, 0)", "startswith('  ')", "startswith(('x', ' '))", "startswith('a', 2)",
    "endswith('c ')", "endswith('b', 0, 5)", "endswith(())", "replace(' ', '_')",
    "replace(' ', '_', 1)", "replace('', '.')", "replace('', '.', 2)", "replace(' ', '', -1)",
    "find('b')", "find('zz')", "find('', 3)", "find(' ', 1, 5)", "find(' ', -2)", "rfind(' ')",
    "index('b')", "index('zz')", "rindex('a')", "count(' ')", "count('')", "count('a', 3)",
    "removeprefix('  ')", "removesuffix(' ')", "removeprefix('x')", "partition('b')",
    "rpartition(' ')", "partition('zz')", "rpartition('zz')", "partition('')", "splitlines()",
    "join(['x', 'y'])", "join('abc')", "join([1])", "join(5)", "isdigit()", "isalpha()",
    "isspace()", "isupper()", "islower()", "isalnum()", "isascii()", "isdecimal()", "isnumeric()",
    "center(12, '*')", "zfill(12)", "split('')", "split(1)", "strip(1)", "startswith(1)",
    "upper(1)", "replace('a')", "nope()", "strip(x=1)",
]
STRINGS = ["sp", "u", "e", "num", "ws", "'aaa'", "'ÀB'"]
PAIRS = ["nil", "t", "n", "f", "s", "l", "d", "(1,)", "missing"]
OPS = ["+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!=", "in", "~", "and", "or"]


def grid():
    for v, t in itertools.product(VALUES, TESTS):
        yield f"{{{{ {v} is {t} }}}}"
    for v, f in itertools.product(VALUES, FILTERS):
        yield f"{{{{ {v}|{f} }}}}"
    for v, m in itertools.product(STRINGS, METHODS):
        yield f"{{{{ [{v}.{m}] }}}}"
    for a, op, b in itertools.product(PAIRS, OPS, PAIRS):
        yield f"{{{{ {a} {op} {b} }}}}"


# What sinter refuses although jinja2 can (the C test lists such things with their places): beyond
# 64 bits, special letter cases, addresses as text.
def refused(source, text):
    return (" at 0x" in text or "built-in method" in text or "<function" in text
            or "class '" in text or len(text) > 4000 or "n ** n" in source
            or source in ("{{ n.real }}", "{{ f.real }}")
            or (".title()" in source and "u." in source) or "ß" in text.upper()
            or (("upper" in source or "title" in source or "capitalize" in source)
                and ("u." in source or "u|" in source)))


def main():
    env = environment()
    used = "s e u n z neg f t no nil l le d de ls nest users m text html sp ws q items num keys"
    assert set(used.split()) == set(VARS)
    sources = list(dict.fromkeys(PLAIN + BLOCKS + list(grid())))
    counts = {"text": 0, "error": 0, "fails": 0, "left out": 0}
    with open(os.path.join(HERE, "jinja_cases.jsonl"), "w", encoding="utf-8") as out:
        for source in sources:
            names = set(re.findall(r"\w+", source))
            case = {"source": source, "vars": {n: VARS[n] for n in VARS if n in names}}
            if "strftime" in source:
                case["now"] = NOW
            kind = "text"
            try:
                given = json.loads(json.dumps(case["vars"]))
                case["text"] = env.from_string(source).render(**given)
                case["text"].encode("utf-8")
            except jinja2.exceptions.TemplateError as e:
                kind = "error" if type(e) is jinja2.exceptions.TemplateError else "fails"
                case[kind] = str(e)
            except Exception as e:     # whatever Python raises from a template
                kind = "fails"
                case[kind] = f"{type(e).__name__}: {e}"
            if kind == "text" and refused(source, case["text"]):
                counts["left out"] += 1
                continue
            counts[kind] += 1
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
    print(counts)


main()
