"""Writes maps, lists and texts as YAML, the way the rules are best read."""

import json
import textwrap

WIDTH = 100


def document(value):
    return "\n".join(lines(value, 0)) + "\n"


def lines(value, depth):
    """Yields the lines of a map or a list."""
    pad = "  " * depth
    if isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                yield f"{pad}- {json.dumps(item, ensure_ascii=False)}"
                continue
            first, *others = lines(item, depth + 1)
            yield f"{pad}- {first.lstrip()}"
            yield from others
        return
    for key, item in value.items():
        if isinstance(item, (dict, list)):
            yield f"{pad}{key}:"
            yield from lines(item, depth + 1)
        else:
            yield from text_lines(f"{pad}{key}:", item, "  " * (depth + 1))


def text_lines(start, text, pad):
    """Yields a text: as it is if it has several lines, folded if it is long, and otherwise quoted."""
    if "\n" in text:
        yield f"{start} |-"
        yield from (pad + line for line in text.splitlines())
    elif len(start) + len(text) + 3 > WIDTH and " " in text:
        yield f"{start} >-"
        width = WIDTH - len(pad)
        folded = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        yield from (pad + line for line in folded)
    else:
        yield f"{start} {json.dumps(text, ensure_ascii=False)}"
