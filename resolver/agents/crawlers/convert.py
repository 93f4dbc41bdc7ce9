"""Converts crawler-user-agents.json into names.txt, the names that the crate `agents` compiles in.

    npm pack crawler-user-agents@1.60.0 && tar xzf crawler-user-agents-1.60.0.tgz
    python3 convert.py package/crawler-user-agents.json > names.txt

The same input makes the same bytes. README.md says what is changed.
"""

import json
import re
import sys
from collections.abc import Iterator

# What an expression that is no plain text stands for. `^` marks the beginning of an agent.
PLAIN = {
    "AdsBot-Google([^-]|$)": ["AdsBot-Google"],
    "(sistrix|SISTRIX) [cC]rawler": ["sistrix crawler", "SISTRIX Crawler"],
    "Ahrefs(Bot|SiteAudit)": ["AhrefsBot", "AhrefsSiteAudit"],
    "S[eE][mM]rushBot": ["SemrushBot", "SEMrushBot"],
    "(^| )sentry\\/": ["^sentry/", " sentry/"],
    "BlogTraffic\\/\\d\\.\\d+ Feed-Fetcher": ["BlogTraffic/"],
    "(^| )PTST\\/": ["^PTST/", " PTST/"],
    "Automaton|Newsify Feed Fetcher": ["Automaton", "Newsify Feed Fetcher"],
    "Chirp|gotosocial": ["Chirp", "gotosocial"],
    "ContextualBot[\\s\\S]*outcomes\\.net": ["ContextualBot"],
    "Current[\\s\\S]*RSS Reader": ["RSS Reader"],
    "Netumo|netumo": ["Netumo", "netumo"],
    "Spider[\\s\\S]*spider\\.com": ["spider.com"],
    "GoogleAssociationService$": ["GoogleAssociationService"],
    "SSL Labs$": ["SSL Labs"],
}
# A name that the desktop app of Slack has too.
DROPPED = {"Sonic"}
# A letter in either case.
EITHER_CASE = re.compile(r"\[(\w)(\w)\]")
# What no plain text has.
SPECIAL = re.compile(r"(?<!\\)[\[\](){}|?*+$.]|(?<!^)\^|\\[a-zA-Z]")


def spelled_out(expression: str) -> Iterator[str]:
    """Yields an expression once for each choice of its letters in either case."""
    found = EITHER_CASE.search(expression)
    if not found:
        yield expression
        return
    for letter in found.groups():
        yield from spelled_out(expression[: found.start()] + letter + expression[found.end() :])


def names(pattern: str) -> list[str]:
    if pattern in PLAIN:
        return PLAIN[pattern]
    found = []
    for expression in spelled_out(pattern):
        if SPECIAL.search(expression):
            sys.exit(f"{pattern} is no plain text: add what it stands for to PLAIN")
        found.append(re.sub(r"\\(.)", r"\1", expression))
    return found


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        crawlers = json.load(file)
    found = {name for crawler in crawlers for name in names(crawler["pattern"])} - DROPPED
    print("\n".join(sorted(found)))


main()
