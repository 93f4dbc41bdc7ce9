"""Definitions of the recording rules, alerts and dashboards; `generate.py` writes them as files."""
