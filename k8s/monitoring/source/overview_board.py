"""The platform at a glance: whether users are hurt, since when, and which part is away."""

from .grafana import Panel, Query, Row, dashboard
from .numbers import ISSUED
from .panels import OURS
from .processes import MISSING, RESOLVERS
from .promql import SILENCE
from .visits import SPOOL_FILLED, SPOOL_SHARE

BAD = "shortmint:slo_bad_requests:ratio_rate5m"
ALERTS = 'alertname=~"Shortmint.+",namespace=~"$namespace"'


def users():
    # In requests that are bad, so that a glance needs no objective: a thousandth is within all of them.
    now = f"max by (slo) ({BAD}{{{OURS}}})"
    since = f'ALERTS_FOR_STATE{{{ALERTS}}} * 1000 and ignoring (alertstate) ALERTS{{alertstate="firing"}}'
    return Row(
        "Are users hurt, and since when?",
        [
            Panel(
                "Bad requests now",
                [Query(now, "{{slo}}")],
                "percentunit",
                "stat",
                width=12,
                about="Availability: answered 5xx. Latency: redirects over 25 ms, creates over 500 ms.",
                lines=[(0.001, "yellow"), (0.0144, "red")],
            ),
            Panel(
                "Alerts, and since when they are true",
                [Query(f"max by (alertname, severity, job) ({since})")],
                "dateTimeFromNow",
                "table",
                width=12,
            ),
            Panel("Bad requests", [Query(now, "{{slo}}")], "percentunit", width=24),
        ],
    )


def parts():
    silence = f"max by (server) ({SILENCE}{{{OURS}}} or issuer_last_success_age_seconds{{{OURS}}})"
    return Row(
        "Which part?",
        [
            Panel(
                "Since the last answer",
                [Query(silence, "{{server}}")],
                "s",
                "bargauge",
                about="Of each server, at the process that has waited the longest.",
                lines=[(30, "yellow"), (60, "red")],
            ),
            Panel(
                "Leaders, ready resolvers, missing pods",
                [
                    Query(f"sum(shortmint:leaders:count{{{OURS}}})", "leaders"),
                    Query(f"sum by (serves) ({RESOLVERS}{{{OURS}}})", "{{serves}}"),
                    Query(f'sum({MISSING}{{namespace=~"$namespace"}}) or vector(0)', "missing"),
                ],
                kind="stat",
            ),
            Panel(
                "Supply of numbers",
                [Query('min(resolver_supply_seconds{job=~"$job"} < Inf)', "shortest")],
                "s",
                "stat",
                width=4,
                about="How long creates continue without an issuer. Without a value nothing is created.",
                lines=[(0, "red"), (240, "green")],
            ),
            Panel(
                "Visits that wait",
                [Query(f"max({SPOOL_FILLED} and resolver_visit_spool_bytes{{{OURS}}})", "fullest spool")],
                "percentunit",
                "stat",
                width=4,
                about="At 100 % further visits are dropped.",
                lines=[(SPOOL_SHARE, "red")],
            ),
        ],
    )


def traffic():
    rate = "sum by (status) (rate(resolver_request_duration_seconds_count{%s}[$__rate_interval]))"
    creates = f"sum(rate(resolver_creates_total{{{OURS}}}[1h]))"
    return Row(
        "Traffic",
        [
            Panel("Redirects", [Query(rate % f'route="redirect",{OURS}', "{{status}}")], "reqps", stacked=True),
            Panel(
                "Creates", [Query(rate % f'route="create_short_url",{OURS}', "{{status}}")], "reqps", stacked=True
            ),
            Panel(
                "Links created, numbers issued",
                [Query(creates, "links"), Query(f"sum({ISSUED}{{{OURS}}})", "numbers")],
                "cps",
                about="Over an hour: numbers by the ledger's own count, which moves by blocks of ten minutes.",
            ),
        ],
    )


def board():
    about = "Whether users are hurt, since when, and which part is away."
    return dashboard("overview", "Overview", about, [users(), parts(), traffic()])
