"""Converts regexes.yaml of uap-core into rules.json, the rules that the crate `agents` compiles in.

    npm pack uap-core@0.18.0 && tar xzf uap-core-0.18.0.tgz
    python3 -m venv venv && venv/bin/pip install pyyaml==6.0.3
    venv/bin/python convert.py package/regexes.yaml > rules.json

The same input makes the same bytes. README.md says what is changed.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterator

import yaml

# The lists that are kept, and the fields of a rule.
LISTS = ["user_agent_parsers", "os_parsers"]
KEPT = ["regex", "family_replacement", "os_replacement"]
PRINTABLE = [chr(code) for code in range(32, 127)]
# An escape, a class in brackets, or any other character.
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


def spans(letters: list[str]) -> Iterator[str]:
    """Yields letters as the ranges of a class: `0-9`, `a`."""

    def quoted(letter: str) -> str:
        return "\\" + letter if letter in r"\]^-[&~" else letter

    start = end = letters[0]
    for letter in [*letters[1:], ""]:
        if letter and ord(letter) == ord(end) + 1:
            end = letter
            continue
        yield quoted(start) + ("" if start == end else "-" + quoted(end))
        start = end = letter


def ascii_token(token: str) -> str:
    """Returns a token that matches the same printable ASCII characters, and no others."""
    if token == ".":
        return "[ -~]"
    if token[0] != "[" and token not in (r"\D", r"\W", r"\S"):
        return token
    return "[" + "".join(spans([it for it in PRINTABLE if re.match(token, it)])) + "]"


def converted(rule: dict[str, object]) -> dict[str, str]:
    kept = {key: str(rule[key]) for key in KEPT if key in rule}
    tokens = TOKEN.findall(kept["regex"])
    return kept | {"regex": "(?-u)" + "".join(ascii_token(token) for token in tokens)}


def main() -> None:
    # A literal bracket within a class.
    warnings.simplefilter("ignore", FutureWarning)
    with open(sys.argv[1], encoding="utf-8") as file:
        lists = yaml.safe_load(file)
    parts = []
    for name in LISTS:
        lines = ",\n".join(json.dumps(converted(rule), ensure_ascii=False) for rule in lists[name])
        parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    print("{\n" + ",\n".join(parts) + "\n}")


main()
