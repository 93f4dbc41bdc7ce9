"""Quantities of Kubernetes: memory, processors, durations of rollouts, and shares of replicas."""

import math
import re

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def size(text):
    """Returns bytes, as of `512Mi`."""
    number, unit = re.fullmatch(r"([\d.]+)(\D*)", str(text)).groups()
    return int(float(number) * UNITS[unit])


def processors(text):
    """Returns processors, as of `500m`."""
    text = str(text)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def share(value, replicas, rounding=math.floor):
    """Returns a number of pods, as of `25%` or of a number."""
    if isinstance(value, str) and value.endswith("%"):
        return rounding(replicas * int(value[:-1]) / 100)
    return int(value)
