"""Records what jinja2 gives for small templates of every part of the language. Run by hand, never
in CI; needs jinja2.

    python make_jinja_cases.py

Writes jinja_cases.jsonl beside this file: one case per line with source, vars and now, and either
text (what is rendered), error (what raise_exception said) or fails (any other exception).
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

PLAIN = r"""
plain text
{{ s }}
{{s}}{{ n }} {{ f }}
{{ t }} {{ no }} {{ nil }} {{ true }} {{ false }} {{ none }} {{ True }} {{ False }} {{ None }}
{{ missing }}|{{ missing.x }}
{{ missing }}
{{ d.missing }}|{{ d['missing'] }}|{{ l[9] }}|{{ nil.x }}|{{ n.x }}|{{ s.x }}
{{ d.missing.more }}
{{ nest.a.b[1].c }} {{ nest['a']['b'][0] }} {{ l.0 }} {{ l[-1] }} {{ s[0] }} {{ u[-1] }} {{ u[7] }}
{{ 1 }} {{ 1.0 }} {{ 1e3 }} {{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5e-7 }} {{ 1E16 }} {{ 123456789012345680.0 }}
{{ 0.1 + 0.2 }} {{ 1e22 }} {{ 1e21 }} {{ 1e15 }} {{ 1e16 }} {{ 1.0e-4 }} {{ 1.0e-5 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ -0.0 }} {{ 100.0 }} {{ 2.50 }}
{{ 'a' }} {{ "b" }} {{ 'a' "b" 'c' }} {{ "it's" }} {{ 'say "x"' }}
{{ '\n\t\\\'\"' }} {{ "\x41\u00e9\U0001F600\101\0" }} {{ '\a\b\f\v\r' }} {{ '\q\w' }} {{ 'a\
b' }} {{ '\é' }}
{{ [1, 'a', none, true, 1.0] }} {{ (1, 2) }} {{ (1,) }} {{ () }} {{ [] }} {{ {} }} {{ {'a': 1, 'b': [2]} }} {{ {1: 2, none: 3, 1.5: 4, true: 5} }}
{{ [1, 2,] }} {{ {'a': 1,} }} {{ 1, 2 }}
{{ q }} {{ [q] }} {{ ["it's"] }} {{ ['"'] }} {{ ["'\""] }} {{ [u] }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 1 / 3 }} {{ 4 / 2 }} {{ 2 ** 0.5 }} {{ 1.5 * 2 }}
{{ 0 // 5 }} {{ -1 % 5 }} {{ 0.0 % 3 }} {{ -0.0 % 3 }} {{ 1e300 * 1e10 }} {{ -1e300 * 1e10 }}
{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ 3 * 'ab' }} {{ [1] + [2] }} {{ [0] * 3 }} {{ (1,) + (2,) }} {{ 'a' * -1 }} {{ true + 1 }}
{{ 'a' ~ 1 ~ none ~ 2.0 ~ [1] ~ missing ~ true }}
{{ 1 ~ 2 + 3 }}
{{ 1 + 2 ~ 3 }}
{{ 'x' ~ 2 * 3 }}
{{ +1 }} {{ -1 }} {{ --1 }} {{ -true }} {{ +f }} {{ - f }}
{{ 1 if true }} {{ 1 if false }} {{ 1 if false else 2 }} {{ 1 if no else 2 if no else 3 }} {{ (1 if t) }}
{{ (1 if no) is defined }} {{ 'x' ~ (1 if no) ~ 'y' }}
{{ (1 if no).x }}
{{ t and no }} {{ t or no }} {{ n and s }} {{ z or 'x' }} {{ not t }} {{ not not t }} {{ e or le or de or nil or 0 }} {{ not n == 42 }}
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 }} {{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ 1 != 2 }} {{ [1, 2] == [1, 2] }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ none == none }} {{ missing == other }} {{ missing == none }}
{{ 'a' < 'b' }} {{ 'a' < 'B' }} {{ [1, 2] < [1, 3] }} {{ (1, 'a') < (1, 'b') }} {{ [1] < [1, 0] }} {{ true < 2 }} {{ 1.5 >= 1 }}
{{ 'ell' in s }} {{ 'x' not in s }} {{ 1 in l }} {{ '1' in l }} {{ 'a' in d }} {{ 'z' not in d }} {{ 'a' in missing }} {{ '' in '' }} {{ 2 in range(3) }} {{ 'b' in d.keys() }} {{ ('a', 'x') in d.items() }}
{{ not 'a' in d }} {{ not ('a' in d) }} {{ 'a' in d and 'b' in d }} {{ 1 in [1] in [[1]] }}
{{ 1 in 5 }}
{{ 1 in 'a' }}
{{ 'a' < 1 }}
{{ none < none }}
{{ {} < {} }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ 'a' - 'b' }}
{{ none + 1 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ -missing }}
{{ -'a' }}
{{ missing < 1 }}
{{ missing() }}
{{ missing[0] }}
{{ missing[1:] }}
{{ n() }}
{{ s() }}
{{ nil[1:] }}
{{ d[1:] }}
{{ s[1:] }} {{ s[:3] }} {{ s[-3:] }} {{ s[::2] }} {{ s[::-1] }} {{ s[1:8:3] }} {{ s[8:1:-2] }} {{ s[20:] }} {{ s[:-20] }} {{ s[3:1] }}
{{ u[2:9] }} {{ u[::-1] }} {{ u[-3:] }} {{ u[1::3] }}
{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ (1, 2, 3)[1:] }} {{ l[5:] }} {{ l[none:2] }} {{ l[true:] }}
{{ l['a'] }}|{{ l[1.0] }}|{{ s['a'] }}|{{ d[1] }}|{{ d[none] }}|{{ l[true] }}|{{ {1: 'x'}[1.0] }}|{{ {1: 'x'}[true] }}
{{ l[:'a'] }}
{{ l[::0] }}
{{ s[1.5:] }}
{{ d[[1]] }}|{{ d[{}] }}
{{ {[1]: 2} }}
{{ {(1, 2): 3}[(1, 2)] }} {{ {(1, 2): 3} }}
{{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 'dflt') }} {{ d.copy() }}
{{ d.items()|list }} {{ d.keys()|list }} {{ d|list }} {{ d.values()|list }} {{ d.items()|length }}
{{ keys.items }}
{{ keys['items'] }} {{ keys['get'] }} {{ keys.get('get') }} {{ keys['x-y'] }} {{ keys['0'] }} {{ keys.0 }}
{{ items }} {{ d.items is defined }} {{ d.nope is defined }} {{ d.items is callable }}
{{ d.pop('a') }}
{{ d.update({}) }}
{{ d.clear }}|{{ d.clear is defined }}|{{ l.append is defined }}|{{ l.append }}
{{ l.append(1) }}
{{ l.sort() }}
{{ ''.__class__ }}|{{ ''.__class__ is defined }}|{{ d.__len__ is defined }}
{{ ''.__class__.__mro__ }}
{{ d._x }}|{{ {'_x': 1}._x }}|{{ {'_x': 1}['_x'] }}
{{ l.index(1) }} {{ l.count(3) }} {{ (1, 2).index(2) }} {{ l.copy() }} {{ [1, 1].count(1) }}
{{ l.index(99) }}
{{ range(3) }} {{ range(1, 4) }} {{ range(5, 0, -2) }} {{ range(3)|list }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(3)[1] }} {{ range(3)|length }} {{ range(10, 0, 3)|list }} {{ range(0) == range(0) }}
{{ range(100001) }}
{{ range(1.5) }}
{{ range() }}
{{ range(1, 2, 0) }}
{{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }} {{ dict([('a', 1)]) }} {{ dict() }}
{{ namespace(a=1).a }} {{ namespace() }} {{ namespace(a=1, b='x') }} {{ namespace({'k': 1}).k }} {{ namespace(a=1).zz }}|{{ namespace(a=1)['a'] }}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}
{% set j = joiner('; ') %}{{ j() }}a{{ j() }}b{{ j() }}c
{% set j = joiner() %}{{ j() }}a{{ j() }}b
{{ raise_exception('Boom! é ' ~ n) }}
{% if no %}{{ raise_exception('no') }}{% endif %}fine
{{ strftime_now('%Y-%m-%d %H:%M:%S') }}
{{ strftime_now('%d %b %Y|%A %a %B|%I %p %j %y %e %-d %-m %%|%F %T %D %R|%U %W %w %u|%c|%x %X|%f|%Z%z|%h%n%t|%C') }}
{% set x = 1 %}{{ x }}
{% set x = 1, 2 %}{{ x }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set (a, b) = [3, 4] %}{{ a }}{{ b }}
{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}
{% set a, b = 'xy' %}{{ a }}{{ b }}
{% set a, b = d %}{{ a }}{{ b }}
{% set a, b = 1, 2, 3 %}
{% set a, b = [1] %}
{% set a, b = 5 %}
{% set x %}block {{ n }}{% endset %}[{{ x }}]
{% set x | upper %}block {{ n }}{% endset %}[{{ x }}]
{% set x | upper | replace('B', 'c') | trim %} block {{ n }} {% endset %}[{{ x }}]
{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}|{{ y }}
{% set ns = namespace(n=0) %}{% for i in l %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}
{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}
{% set ns = namespace() %}{% set ns.a %}x{{ n }}{% endset %}{{ ns.a }}
{% set d.x = 1 %}
{% set missing.x = 1 %}
{% set x = x %}{{ x }}
{% set s = s ~ '!' %}{{ s }}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}
{% for i in [1, 2] %}{% set y = i %}{% endfor %}[{{ y }}]
{% if t %}{% set y = 5 %}{% endif %}[{{ y }}]
{% if no %}{% set s = 5 %}{% endif %}[{{ s }}]
{% if no %}{% set y = 5 %}{% elif t %}{% set y = 6 %}{% else %}{% set y = 7 %}{% endif %}[{{ y }}]
{% for i in l %}{% if loop.first %}{% set y = i %}{% endif %}[{{ y }}]{% endfor %}
{% macro f() %}[{{ s }}]{% endmacro %}{{ f() }}{% set s = 1 %}{{ f() }}
{% macro f() %}[{{ s }}]{% endmacro %}{{ s }}{{ f() }}{% set s = 1 %}{{ f() }}
{% macro f() %}[{{ s }}]{% endmacro %}{{ f() }}{% if t %}{% set s = 1 %}{% endif %}{{ f() }}
{% for i in [1] %}{% macro f() %}[{{ s }}]{% endmacro %}{{ f() }}{% set s = 1 %}{{ f() }}{% endfor %}
{% for i in [1] %}{% macro f() %}[{{ i }}{{ s }}{{ loop.index }}]{% endmacro %}{{ f() }}{% endfor %}
{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}|{{ f(1, 3) }}|{{ f(a=5, c=6) }}|{{ f(1, c=2, b=3) }}|{{ f() }}
{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}
{% macro f(a=b, b=1) %}[{{ a }}{{ b }}]{% endmacro %}{{ f() }}{% set b = 7 %}{{ f() }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(z=2) }}
{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}
{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}
{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}{{ f() }}
{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, y=4) }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% macro f() %}a{% endmacro %}{{ f }}|{{ f() is string }}|{{ f.name }}|{{ f is callable }}
{% macro f() %}{% set x = 1 %}{{ x }}{% endmacro %}{{ f() }}[{{ x }}]
{% macro f(x) %}<{{ x }}:{{ caller() }}>{% endmacro %}{% call f(1) %}body {{ n }}{% endcall %}
{% macro f(x) %}<{{ caller(x, 2) }}>{% endmacro %}{% call(a, b) f(1) %}{{ a }}-{{ b }}{% endcall %}
{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}
{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}
{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}
{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}g{% endmacro %}{{ f() }}
{% macro f() %}{% for i in l %}{{ i }}{{ caller() }}{% endfor %}{% endmacro %}{% call f() %}{{ loop is defined }}{% endcall %}
{% for i in l %}{{ i }}{% endfor %}
{% for i in le %}{{ i }}{% else %}none{% endfor %}
{% for i in l %}{{ i }}{% else %}none{% endfor %}
{% for i in missing %}{{ i }}{% else %}none{% endfor %}
{% for i in nil %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for c in u %}[{{ c }}]{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}
{% for a, (b, c) in [(1, (2, 3)), (4, [5, 6])] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for a, b in l %}{% endfor %}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}
{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }}{% endfor %}
{% for i in l %}{{ loop.nope is defined }}{{ loop['index'] }}{{ loop }}{% endfor %}
{% for i in l %}{% for k in 'ab' %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% for i in l %}{% set outer = loop %}{% for k in 'ab' %}{{ outer.index }}{{ loop.index }}{% endfor %}{% endfor %}
{% for i in range(10) if i % 2 %}{{ i }}{{ loop.index }}{{ loop.length }};{% endfor %}
{% for i in range(10) if i > 20 %}{{ i }}{% else %}none{% endfor %}
{% for x in m if x.role == 'user' %}{{ x.content }}{% endfor %}
{% set ns = namespace(go=true) %}{% for i in l if ns.go %}{{ i }}{% set ns.go = false %}{% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in range(3) %}{% for k in range(3) %}{% if k == 1 %}{% break %}{% endif %}{{ i }}{{ k }};{% endfor %}{% endfor %}
{% for i in range(3) %}{% break %}{% else %}else{% endfor %}
{% for i in l %}{% set x %}{% if i == 1 %}{% continue %}{% endif %}a{{ i }}{% endset %}{{ x }}{% endfor %}
{% for i in l %}{% filter upper %}{% if i == 1 %}{% break %}{% endif %}a{{ i }}{% endfilter %}{% endfor %}
{% for loop in l %}{% endfor %}
{% for i in l %}{% set loop = 1 %}{% endfor %}
{% set loop = 5 %}{{ loop }}
{% break %}
{% for i in l %}{% macro f() %}{% break %}{% endmacro %}{% endfor %}
{% for i in l %}{{ loop(l) }}{% endfor %}
{% for i in l recursive %}x{% endfor
{% if n == 42 %}a{% elif n == 1 %}b{% else %}c{% endif %}
{% if no %}a{% elif z %}b{% elif s %}c{% else %}d{% endif %}
{% if missing %}a{% endif %}{% if not missing %}b{% endif %}
{% if 1, 2 %}a{% endif %}
{% if n is defined and n > 5 %}y{% endif %}
{% if m[0].role == 'system' and m[0]['content'] %}y{% endif %}
{% filter upper %}abc {{ s }}{% endfilter %}
{% filter replace('a', 'b')|upper %}abc{% endfilter %}
{% filter indent(2) %}a
b{% endfilter %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}[{{ a }}]
{% with %}{% set a = 1 %}{{ a }}{% endwith %}[{{ a }}]
{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}
{% generation %}a{{ n }}{% endgeneration %}b
{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}[{{ y }}]
{% for i in l %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% for i in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
{% print n %}
a{# comment #}b{#- x -#} c {#+ y +#} d
{# multi
line #}
x
a {#- trim -#} b
{% raw %}{{ not }} {% rendered %} {# x #}{% endraw %}
a {%- raw -%}  {{ x }}  {%- endraw -%} b
{% raw %}
x
{% endraw %}
y
  {% raw %}  x
  {% endraw %}  y
  {% if t %}
    a
  {% endif %}
  b
  {%- if t -%}
    a
  {%- endif -%}
  b
  {%+ if t %}
    a
  {%+ endif %}
  b
{% if t +%}
 a
{% endif +%}
b
a {{- n -}} b
a
{{- n }}
b {{ n -}}
 c
   {{ n }}
x {% if t %} y {% endif %} z
{% if t %}

a{% endif %}

b
a{% if t %}
{% endif %}
b
  {# c #}
x
  a {# c #}
x
{{ n }}

x
{{ n
}}
{{ '{{ x }}' }} {{ '%}' }} {{ "#}" }}
{{ {'a': {'b': 1}} }}{{ {'a': {'b': 1}}['a']['b'] }}
{{ {'a': 1}}}
{{ {'a':{}}}}
{ { } } {{ '{' }} {% set x = '}}' %}{{ x }}
{{ }}
{% %}
{{ 1 2 }}
{{ a b }}
{{ 'a }}
{{ (1 }}
{{ 1) }}
{{ [1, 2 }}
{{ 1 + }}
{{ * 2 }}
{{ a. }}
{{ a.'b' }}
{{ a[] }}
{{ a | }}
{{ a is }}
{{ a is not }}
{{ f(a=1, 2) }}
{{ 1 ! 2 }}
{{ a ? b }}
{{ $x }}
{{ 1__0 }}
{{ 1abc }}
{% if %}a{% endif %}
{% if t %}a
{% endif %}
{% else %}
{% for %}{% endfor %}
{% for i %}{% endfor %}
{% for i in %}{% endfor %}
{% for 1 in l %}{% endfor %}
{% for a.b in l %}{% endfor %}
{% set %}
{% set 1 = 2 %}
{% set a + b = 2 %}
{% set x = %}
{% set true = 1 %}
{% macro %}{% endmacro %}
{% macro f %}{% endmacro %}
{% macro f(a=1, b) %}{% endmacro %}
{% macro f(a, a) %}{% endmacro %}
{% macro f() %}
{% call n %}{% endcall %}
{% call n() %}{% endcall %}
{% endif %}
{% if t %}{% for i in l %}{% endif %}{% endfor %}
{% unknown %}
{{ x|unknown }}
{{ x is unknown }}
{% if no %}{{ x|unknown }}{% endif %}ok
{% if t %}{{ x|unknown }}{% endif %}ok
{{ (x|unknown) if no else 'ok' }}
{{ x is unknown if no else 'ok' }}
{% if no %}{% for i in l %}{{ x|unknown }}{% endfor %}{% endif %}ok
{{ s is string is string }}
{{ s|upper|lower|title }} {{ s | replace("o", "0") | length }} {{ -1|abs }} {{ (-1)|abs }} {{ 1 + -2|abs }}
{{ l|join(',') is string }} {{ 'a' ~ 'b'|upper }} {{ not s|length > 3 }} {{ s|length + 1 }}
{{ n is divisibleby 7 }} {{ n is divisibleby(5) }} {{ n is eq 42 }} {{ n is in [42] }} {{ n is not in [1] }} {{ not n is eq 42 }} {{ n is not none }} {{ n is defined and n }}
{{ n is number or false }} {{ (n is number) ~ 'x' }} {{ n is ge 5 }} {{ 's' is in s|lower }}
{{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 'nope' is test }} {{ 'tojson' is filter }}
{{ ("<b>"|safe) + "<i>" }} {{ "<i>" + "<b>"|safe }} {{ ("<b>"|safe) ~ "<i>" }} {{ "<b>"|safe }} {{ ("<b>"|safe)|upper }} {{ ("<b>"|safe) is escaped }} {{ "x"|e is escaped }} {{ html|e }} {{ html|e|e }} {{ html|escape|string is escaped }} {{ [html|e] }} {{ ("<b>"|safe) == "<b>" }} {{ html|forceescape }} {{ html|safe|forceescape }} {{ ('<a>'|safe) * 2 + '<' }} {{ {'a': 1}|tojson|safe + '"' }} {{ "a"|safe|length }} {{ ('<a'|safe)[1:] + '<' }} {{ missing|e }}|{{ missing|safe }}
{{ ["<b>"|safe, "<i>"]|join("<") }} {{ ("<a>"|safe).strip() + '<' }} {{ ('a<'|safe)|trim + '<' }} {{ ('a b'|safe).split()|list }}
{{ m|tojson }}
{{ m|tojson(indent=2) }}
{{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} {{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ q|tojson }} {{ q|tojson(ensure_ascii=true) }} {{ [1.0, 1e100, 0.1, -0.0, none, true]|tojson }} {{ (1, 2)|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ []|tojson(indent=2) }} {{ {}|tojson(indent=2) }} {{ [[], {}]|tojson(indent=1) }} {{ 'x'|tojson }} {{ html|tojson }} {{ nest|tojson(indent='\t') }} {{ l|tojson(indent=0) }} {{ l|tojson(separators=('; ', '='), indent=1) }} {{ d|tojson(none) }} {{ d|tojson(true, 1) }}
{{ missing|tojson }}
{{ [missing]|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ d.items()|tojson }}
{{ range(3)|tojson }}
{{ {1: 1, 'a': 2}|tojson(sort_keys=true) }}
{{ users|map(attribute='name')|join(', ') }} {{ users|map(attribute='ok', default='?')|list }} {{ users|map(attribute='zz')|list }} {{ ls|map('upper')|list }} {{ ls|map('replace', 'a', 'x')|join }} {{ nest.a.b|map('string')|list }} {{ [[1, 2], [3]]|map('length')|list }} {{ [[1, 2]]|map(attribute=0)|list }} {{ [{'a': {'b': 1}}]|map(attribute='a.b')|list }} {{ [[[5]]]|map(attribute='0.0')|list }} {{ missing|map('upper')|list }} {{ nil|map('upper')|list }} {{ ls|map('upper')|first }}
{{ ls|map('nope')|list }}
{{ ls|map()|list }}
{{ 5|map('upper')|list }}
{{ users|selectattr('ok')|map(attribute='name')|list }} {{ users|rejectattr('ok')|map(attribute='name')|list }} {{ users|selectattr('age', 'equalto', 30)|list|length }} {{ users|selectattr('age', '>', 26)|map(attribute='name')|list }} {{ users|selectattr('ok', 'defined')|list|length }} {{ users|rejectattr('name', 'in', ['Bob'])|map(attribute='name')|join }} {{ [1, 2, 3, 4]|select('odd')|list }} {{ [1, 2, 3, 4]|reject('odd')|list }} {{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1, '']|reject|list }} {{ [1, 2]|select('divisibleby', 2)|list }} {{ [1, 'a']|select('string')|list }} {{ m|selectattr('role', 'eq', 'user')|list|length }}
{{ (m|selectattr('role', 'eq', 'nope')) and 'truthy' }}
{{ m|selectattr('role', 'eq', 'user')|length }}
{{ [1]|select('nope')|list }}
{{ users|selectattr|list }}
{% set g = ls|map('upper') %}{{ g|list }}{{ g|list }}
{% set g = ls|map('upper') %}{{ g|first }}{{ g|list }}
{% set g = l|reverse %}{{ g|list }}{{ g|list }}
{% set g = ls|map('upper') %}{{ 'A' in g }}{{ g|list }}
{{ users|sort(attribute='name')|map(attribute='name')|list }} {{ users|sort(attribute='age,name')|map(attribute='name')|list }} {{ users|sort(attribute='age', reverse=true)|map(attribute='name')|list }} {{ ls|sort }} {{ ls|sort(case_sensitive=true) }} {{ ls|sort(true) }} {{ d|sort }} {{ 'hello'|sort|join }} {{ [none, none]|sort }} {{ [1, true, 0.5]|sort }} {{ []|sort }}
{{ [1, 'a']|sort }}
{{ [none, 1]|sort }}
{{ nil|sort }}
{{ [none, none]|min }}
{{ users|groupby('age')|list }}
{% for g in users|groupby('age') %}{{ g.grouper }}{{ g.list|length }}{{ g[0] }}{% endfor %}{% for k, v in users|groupby('name') %}{{ k }}{{ v|length }}{% endfor %}{% for k, v in users|groupby('ok', default='?') %}{{ k }}{% endfor %}
{{ l|min }} {{ l|max }} {{ ls|min }} {{ ls|max }} {{ ls|max(case_sensitive=true) }} {{ users|min(attribute='age') }} {{ users|max(attribute='name') }} [{{ []|min }}] {{ 'hello'|max }}
{{ l|sum }} {{ [1.5, 2]|sum }} {{ users|sum(attribute='age') }} {{ []|sum }} {{ l|sum(start=10) }} {{ [[1], [2]]|sum(start=[]) }}
{{ ['a']|sum }}
{{ ['a']|sum(start='') }}
{{ ls|unique|list }} {{ ['a', 'A', 'b']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ [1, 1.0, true, 2]|unique|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }}
{{ [[1]]|unique|list }}
{{ l|batch(2)|list }} {{ l|batch(2, 'x')|list }} {{ l|slice(2)|list }} {{ l|slice(2, 'x')|list }} {{ range(7)|slice(3)|list }} {{ []|batch(2)|list }}
{{ l|first }} {{ l|last }} [{{ []|first }}] [{{ []|last }}] {{ 'abc'|first }} {{ u|last }} {{ d|first }} {{ d|last }} {{ range(3)|last }} {{ d.items()|first }} {{ d.items()|last }}
{{ missing|first }}|{{ missing|length }}|{{ missing|list }}|{{ missing|join }}|{{ missing|upper }}|{{ missing|trim }}
{{ missing|last }}
{{ ls|map('upper')|last }}
{{ 5|first }}
{{ 5|length }}
{{ nil|length }}
{{ nil|list }}
{{ nil|join }}
{{ l|reverse|list }} {{ s|reverse }} {{ u|reverse }} {{ d|reverse|list }} {{ range(3)|reverse|list }} {{ (1, 2)|reverse|list }}
{{ 5|reverse }}
{{ d|dictsort }} {{ {'B': 1, 'a': 2, 'C': 0}|dictsort }} {{ {'B': 1, 'a': 2}|dictsort(true) }} {{ {'B': 2, 'a': 1}|dictsort(by='value') }} {{ {'B': 1, 'a': 2}|dictsort(reverse=true) }} {{ {'b': 1, 'B': 2}|dictsort }}
{{ d|dictsort(by='x') }}
{{ l|dictsort }}
{{ missing|dictsort }}
{{ {1: 1, 'a': 2}|dictsort }}
{{ l|items }}
{{ missing|items|list }} {{ d|items|list }}
{{ l|join }} {{ l|join(', ') }} {{ users|join(', ', attribute='name') }} {{ 'abc'|join('-') }} {{ d|join('-') }} {{ [none, 1.0, true]|join(' ') }} {{ l|join(1) }} {{ [[1]]|join }}
{{ missing|default('x') }} {{ nil|default('x') }} {{ nil|default('x', true) }} {{ e|d('x', boolean=true) }} {{ d.zz|default({}) }} [{{ missing|default }}] {{ n|default(1) }} {{ missing|default(default_value=3) }} {{ missing.x|default(1) }}
{{ (missing|default({})).x }} {{ d.zz.yy|default(1) }}
{{ '%s-%d' % ('a', 3) }} {{ '%s' % 'x' }} {{ '%s' % l }} {{ '%5.2f|%-5s|%05d|%+d|%x|%X|%o|%%|%r|%5s|%e|%g|% d' % (3.14159, 'ab', 42, 7, 255, 255, 8, 'q', 'r', 12345.678, 0.0001, 5) }} {{ '%(a)s %(b)03d' % {'a': 1, 'b': 2} }} {{ '%.2s' % 'abc' }} {{ '%d' % 3.9 }} {{ '%s' % none }} {{ '%s %s' | format('a', 1) }} {{ '%(x)s'|format(x=1) }} {{ '%i' % true }} {{ '%08.3f' % -3.14159 }} {{ '%s' % (u,) }} {{ '%5s|' % 'é' }} {{ 'abc' % {} }} {{ 'x' % () }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ '%d' % 'a' }}
{{ '%x' % 1.5 }}
{{ '%(a)s' % {'b': 1} }}
{{ '%(a)s' % 5 }}
{{ 'abc' % 5 }}
{{ '%' % 5 }}
{{ 'a {} b {}'.format(1, 'x') }} {{ '{0} {1} {0}'.format('a', 'b') }} {{ '{x} {y}'.format(x=1, y=none) }} {{ '{{}} {}'.format(1) }} {{ '{}'.format(u) }}
{{ '{}'.format() }}
{{ '{0} {}'.format(1, 2) }}
{{ '{x}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ l is iterable }}{{ s is iterable }}{{ n is iterable }}{{ d is mapping }}{{ l is sequence }}{{ namespace() is mapping }}{{ namespace() is iterable }}{{ range(1) is sequence }}{{ d.items() is sequence }}{{ d.items() is iterable }}{{ (ls|map('upper')) is iterable }}{{ (ls|map('upper')) is sequence }}
{{ n is sameas(42) }} {{ none is sameas none }} {{ true is sameas true }} {{ 1 is sameas true }} {{ d is sameas d }} {{ [] is sameas [] }} {{ t is sameas(true) }}
{{ n is odd }}{{ 3 is odd }}{{ 3.0 is odd }}{{ 2.5 is even }}{{ true is odd }}
{{ 'a' is odd }}
{{ nil is odd }}
{{ 'a' is gt 1 }}
{{ n is eq }}
{{ n is defined(1) }}
{% set x = namespace(f=none) %}{% macro g(a) %}<{{ a }}>{% endmacro %}{% set x.f = g %}{{ x.f(1) }}
{% set y = {'f': range} %}{{ y.f(2)|list }} {{ y['f'](2)|list }}
{{ ls|map('first')|join }} {{ (l, ls)|map('last')|join }}
{% for message in m %}{% if loop.first and message.role == 'system' %}{{ message.content|trim }}{% elif message.tool_calls is defined %}{% for c in message.tool_calls %}{{ c.function.name }}({{ c.function.arguments|tojson }}){% endfor %}{% else %}{{ message['content'] }}{% endif %}{{ '\n' if not loop.last }}{% endfor %}
{{ m[-1]['tool_calls'][0].function.arguments.y[1] }} {{ m|length }} {{ m[1:]|length }} {{ (m|last).role }} {{ m[0].get('zz', {}).get('y') }}
{% set ns = namespace(found=false) %}{% for x in m %}{% if x.role == 'user' and not ns.found %}{% set ns.found = true %}{{ loop.index0 }}{% endif %}{% endfor %}{{ ns.found }}
{{ text }}|{{ text|indent }}|{{ text|indent(2, true) }}|{{ text|indent(2, blank=true) }}|{{ text|indent('> ', first=true) }}|{{ ''|indent(first=true) }}|{{ 'a\n'|indent }}|{{ 'a\n\n b\n'|indent(1) }}
{{ n|indent }}
{{ text.splitlines() }} {{ text.splitlines(true) }} {{ 'a\x0bb\x0cc\x1cd\u2028e\x85f'.splitlines() }} {{ ''.splitlines() }} {{ '\n'.splitlines() }} {{ 'a\n\n'.splitlines(keepends=true) }}
{{ 'foo bar baz qux quux'|truncate(9) }} {{ 'foo bar baz qux quux'|truncate(9, true) }} {{ 'foo bar'|truncate(5, false, '..', 0) }} {{ 'short'|truncate }} {{ 'foo bar baz'|truncate(6, leeway=5) }} {{ 'abcdefghijklmnop'|truncate(9, end='') }}
{{ s|wordcount }} {{ 'a-b c_d é 1'|wordcount }} {{ ''|wordcount }}
{{ 'abc'|center(9) }}| {{ 'abc'|center(8) }}| {{ 'abcd'|center(9) }}| {{ 'abc'.center(8, '*') }} {{ 'abcd'.center(9, '*') }} {{ 'x'.ljust(3, '.') }} {{ 'x'.rjust(3) }} {{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ '+1'.zfill(1) }} {{ 'é'.zfill(3) }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 2.5|round(0, 'ceil') }} {{ 2.1|round(method='floor') }} {{ 42|round }} {{ 42.55|round(1) }} {{ -2.5|round }} {{ 1.25|round(1) }} {{ 1.35|round(1) }} {{ 2.123456|round(3, 'ceil') }} {{ true|round }} {{ 5|round(2) }} {{ 5|round(1, 'floor') }} {{ 1e20|round }}
{{ 'a'|round }}
{{ 2.5|round(1, 'x') }}
{{ '42'|int }} {{ '42.7'|int }} {{ 'abc'|int }} {{ 'abc'|int(5) }} {{ 3.9|int }} {{ -3.9|int }} {{ '0x1f'|int(0, 16) }} {{ '1f'|int(base=16) }} {{ '101'|int(0, 2) }} {{ nil|int }} {{ [1]|int(7) }} {{ true|int }} {{ ' 42 '|int }} {{ '1_000'|int }} {{ '-5'|int }} {{ '+5'|int }} {{ '1e3'|int }} {{ ''|int }} {{ 'inf'|int }} {{ 'nan'|int(3) }} {{ '0x1f'|int }} {{ '0b11'|int(0, 0) }} {{ '1__0'|int }} {{ '_1'|int }} {{ '012'|int }}
{{ missing|int }}
{{ '4.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ ' 1e3 '|float }} {{ '.5'|float }} {{ '5.'|float }} {{ '.'|float }} {{ 'inf'|float }} {{ '-Infinity'|float }} {{ 'nan'|float }} {{ '1_0.5'|float }} {{ nil|float }} {{ true|float }} {{ ''|float }} {{ '1e'|float }} {{ '0x10'|float }}
{{ -5|abs }} {{ 5.5|abs }} {{ (-5.5)|abs }} {{ true|abs }}
{{ 'a'|abs }}
{{ n|attr('x') }}|{{ d|attr('a') }}|{{ d|attr('items') is defined }}|{{ namespace(a=1)|attr('a') }}
{{ 'ß'|lower }} {{ 'ÀÉ'|lower }} {{ 'àé'|upper }} {{ 'ñandú çA'|title }} {{ 'привет МИР'|capitalize }} {{ 'привет мир'.title() }} {{ 'ÿ'.upper() }}
{{ "they're bill's o'neil-smith (x) [y] {z} <w> 1st"|title }} {{ "they're bill's o'neil-smith x1y".title() }} {{ 'HELLO wORLD'|capitalize }} {{ ''|title }}{{ ''|capitalize }}
{{ n.real }}
""".strip("\n").split("\n")

# Lines that belong together: templates with newlines are written as one entry here.
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
                case["text"] = env.from_string(source).render(**json.loads(json.dumps(case["vars"])))
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
