"""Makes tests/fuzz/corpus/jinja out of tests/templates/jinja_cases.jsonl: one seed per tag, filter,
test, method and kind of token, each a template or template NUL variables."""
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "corpus", "jinja")
CASES = os.path.join(HERE, "..", "templates", "jinja_cases.jsonl")


def main():
    os.makedirs(FOLDER, exist_ok=True)
    for name in os.listdir(FOLDER):
        os.remove(os.path.join(FOLDER, name))
    seen, n = set(), 0
    with open(CASES, encoding="utf-8") as f:
        for case in map(json.loads, f):
            found = set(re.findall(r"\{[%#{][-+]?\s*\w+|\|\s*\w+|\bis \w+|\.\w+\(|[^\w\s]",
                                   case["source"]))
            if len(found - seen) < 2 and len(case["source"]) < 40:
                continue
            if not found - seen:
                continue
            seen |= found
            data = case["source"].encode()
            if n % 2:
                data += b"\0" + json.dumps(case["vars"], ensure_ascii=False).encode()
            with open(os.path.join(FOLDER, f"seed{n:03}"), "wb") as out:
                out.write(data)
            n += 1
    print(n, "seeds")


main()
