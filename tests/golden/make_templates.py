"""Records what chat templates give for many conversations. Run by hand, never in CI; see README.md.

    python make_templates.py FOLDER

FOLDER holds llama.cpp's models/templates; smollm2.jinja lies beside the recorded cases. Writes
templates/cases.jsonl.
"""
import argparse
import datetime
import json
import os

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
TEMPLATES = {       # file -> the tokenizer's tokens
    "smollm2.jinja": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"},
    "Qwen-Qwen3-0.6B.jinja": {"eos_token": "<|im_end|>"},
    "meta-llama-Llama-3.2-3B-Instruct.jinja": {
        "bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "google-gemma-2-2b-it.jinja": {"bos_token": "<bos>", "eos_token": "<eos>"},
    "Mistral-Small-3.2-24B-Instruct-2506.jinja": {"bos_token": "<s>", "eos_token": "</s>"},
}
CLOCK = ["2024-07-26T12:34:56", "2025-03-05T01:02:03"]


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant wrote; as text it is its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def environment(now):
    """As Hugging Face's transformers sets it up, with a clock that stands still."""
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime.fromisoformat(now).strftime
    return env


# --- conversations -------------------------------------------------------------------------

def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def bot(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, i="a1b2c3d4e"):
    return {"id": i, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content, i="a1b2c3d4e", role="tool", **more):
    return {"role": role, "content": content, "tool_call_id": i, **more}


def tool(name, about, properties, required=()):
    return {"type": "function", "function": {
        "name": name, "description": about, "parameters": {
            "type": "object", "properties": properties, "required": list(required)}}}


WEATHER = tool("get_weather", "The weather of a place.", {
    "place": {"type": "string", "description": "A town, e.g. \"Köln\" or <anything> & more"},
    "unit": {"type": "string", "enum": ["°C", "°F"], "default": "°C"}}, ["place"])
ODD = tool("odd'name", "Back\\slash, tab\t, newline\n, \u2028, \x01 and 日本語 👍🏽 /", {
    "n": {"type": "number", "minimum": -0.5, "maximum": 1e22, "default": 1.0},
    "tiny": {"const": 1e-7}, "big": {"const": 9007199254740993},
    "flag": {"type": ["boolean", "null"], "default": None, "examples": [True, False, None]},
    "empty": {}, "list": [], "nested": {"a": [1, [2, {"b": []}]]}, "third": {"const": 1 / 3}})
NONE = tool("now", "", {})

THINK = "<think>\nFirst, a thought.\n\nThen another.\n</think>\n\nThe answer."
HI = [user("Hello!")]
TALK = [user("What is 2+2?"), bot("4."), user("And 3+3?"), bot("6."), user("Thanks.")]
ASK = user("How warm is it in Köln?")
CALLED = [ASK, bot("", tool_calls=[call("get_weather", {"place": "Köln", "unit": "°C"})])]
ANSWERED = CALLED + [result("{\"t\": 21.5}")]

# name, messages, further variables
CONVERSATIONS = [
    ("user", HI, {}),
    ("user, tools undefined", HI, {"tools": ...}),
    ("system and user", [system("Be brief."), *HI], {}),
    ("several turns", TALK, {}),
    ("several turns and system", [system("You are a pirate.\nTalk like one."), *TALK], {}),
    ("ends with assistant", TALK[:4], {}),
    ("blanks around", [system("  s \n"), user("\n\n a  b \t"), bot("  c\n"),
                       user(" \u00a0d\u3000 ")], {}),
    ("empty contents", [system(""), user(""), bot(""), user("")], {}),
    ("unicode", [system("日本語で。"),
                 user("Grüße, שלום, नमस्ते 👩🏽‍🚀 e\u0301"), bot("Привет!"), user("𠀀")], {}),
    ("markup", [user("<b>\"x\" & 'y'</b> {{ z }} {% if %} <|im_end|> </s>\\n")], {}),
    ("one tool", HI, {"tools": [WEATHER]}),
    ("tools and system", [system("Use tools."), ASK], {"tools": [WEATHER, NONE]}),
    ("odd tool", [system("s"), ASK], {"tools": [ODD]}),
    ("no tools", HI, {"tools": []}),
    ("tool call", CALLED, {"tools": [WEATHER]}),
    ("tool result", ANSWERED, {"tools": [WEATHER]}),
    ("tool result, tools undefined", ANSWERED, {"tools": ...}),
    ("after a tool", ANSWERED + [bot("21.5 °C."), user("And in Bonn?")], {"tools": [WEATHER]}),
    ("two calls", [ASK, bot("Let me see.", tool_calls=[
        call("get_weather", {"place": "Köln"}), call("now", {}, "x9y8z7w6v")]),
        result("21"), result("12:00", "x9y8z7w6v")], {"tools": [WEATHER, NONE]}),
    ("arguments as text", [ASK, bot("", tool_calls=[
        call("get_weather", "{\"place\":  \"Bonn\"}")])], {"tools": [WEATHER]}),
    ("odd arguments", [ASK, bot("", tool_calls=[call("odd'name", {
        "f": 0.1, "e": 1e-05, "i": -7, "u": "é\"\\\n\u2029</x>",
        "l": [1.0, 2e30, None, True], "o": {}})])],
     {"tools": [ODD]}),
    ("call without content", [ASK, {"role": "assistant", "tool_calls": [call("now", {})]}], {}),
    ("no calls", [ASK, bot("None needed.", tool_calls=[]), user("ok")], {}),
    ("result is a mapping", CALLED + [result({"t": 21.5, "wind": ["N", 3]})], {}),
    ("result is a list", CALLED + [result(["a", 1, None])], {}),
    ("result within content", CALLED + [result({"content": "inner"})], {}),
    ("ipython", CALLED + [result("out", role="ipython")], {}),
    ("short call id", [ASK, bot("", tool_calls=[call("now", {}, "call_1")])], {}),
    ("short result id", CALLED + [result("x", "1")], {}),
    ("no result id", CALLED + [{"role": "tool", "content": "x"}], {}),
    ("thought in content", [user("q"), bot(THINK), user("again")], {}),
    ("thought last", [user("q"), bot(THINK)], {}),
    ("thought before a call", [ASK, bot(THINK, tool_calls=[call("now", {})]), result("12:00")],
     {"tools": [NONE]}),
    ("reasoning", [user("q"), bot("A.", reasoning_content="\nsince\n"), user("r"),
                   bot("B.", reasoning_content="so")], {}),
    ("empty reasoning", [user("q"), bot("A.", reasoning_content="")], {}),
    ("no reasoning", [user("q"), bot("A.", reasoning_content=None)], {}),
    ("two thoughts", [user("q"), bot("<think>a</think>b<think>c</think>\n\nd")], {}),
    ("response as user", [user("q"), bot("A."), user("<tool_response>\nx\n</tool_response>")], {}),
    ("thinking on", HI, {"enable_thinking": True}),
    ("thinking off", HI, {"enable_thinking": False}),
    ("thinking off, system", [system("s"), *TALK], {"enable_thinking": False}),
    ("date given", HI, {"date_string": "01 Jan 2000"}),
    ("tools with system", [system("s"), ASK], {"tools": [WEATHER], "tools_in_user_message": False}),
    ("own tools", HI, {"custom_tools": [NONE]}),
    ("tools, no user", [system("s")], {"tools": [NONE]}),
    ("blocks", [{"role": "user", "content": [
        {"type": "text", "text": "What is "}, {"type": "image"},
        {"type": "text", "text": "?"}]}], {}),
    ("system blocks", [{"role": "system", "content": [{"type": "text", "text": "s"}]}, *HI], {}),
    ("bad block", [{"role": "user", "content": [{"type": "video"}]}], {}),
    ("user twice", [user("a"), user("b")], {}),
    ("assistant first", [bot("a"), user("b")], {}),
    ("system later", [user("a"), system("s"), bot("b"), user("c")], {}),
    ("system twice", [system("a"), system("b"), user("c")], {}),
    ("unknown role", [user("a"), {"role": "critic", "content": "b"}], {}),
    ("no messages", [], {}),
    ("content is null", [{"role": "user", "content": None}], {}),
    ("no content", [{"role": "user"}], {}),
    ("no role", [{"content": "a"}], {}),
    ("content is a number", [{"role": "user", "content": 7}], {}),
]


def cases(folder):
    n = 0
    for file, tokens in TEMPLATES.items():
        path = os.path.join(HERE, file)
        path = path if os.path.exists(path) else os.path.join(folder, file)
        with open(path, encoding="utf-8") as f:
            source = f.read()
        for name, messages, more in CONVERSATIONS:
            for prompt in (True, False) if n % 3 == 0 else (True,):
                given = {"messages": messages, "tools": None, "add_generation_prompt": prompt,
                         **tokens, **more}
                given = {k: v for k, v in given.items() if v is not ...}
                case = {"template": file, "name": name, "now": CLOCK[n // 3 % 2], "vars": given}
                try:
                    template = environment(case["now"]).from_string(source)
                    case["text"] = template.render(**json.loads(json.dumps(given)))
                except jinja2.exceptions.TemplateError as e:
                    raised = type(e) is jinja2.exceptions.TemplateError
                    case["error" if raised else "fails"] = str(e)
                except TypeError as e:
                    case["fails"] = str(e)
                yield case
            n += 1


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("folder")
    arg = arg.parse_args()
    out = list(cases(arg.folder))
    with open(os.path.join(HERE, "cases.jsonl"), "w", encoding="utf-8") as f:
        for case in out:
            f.write(json.dumps(case, ensure_ascii=False) + "\n")
    for case in out:
        if "text" not in case:
            print(case["template"][:12], case["name"], {k: case[k] for k in case if k in
                                                        ("error", "fails")})
    print(len(out), "cases")


main()
