"""The platform at a glance: objectives, leadership, supply, and what is wrong."""

from .grafana import Panel, Query, Row, dashboard
from .slo import SLOS

OURS = 'job=~"$job",namespace=~"$namespace"'
MONTH = "30d"
EXPIRY = "certificate_expiry_timestamp_seconds"


def budget(slo):
    """Returns the share of the error budget of 30 days that is left."""
    bad, requests = (
        f'sum(sum_over_time(shortmint:slo_{of}:rate5m{{slo="{slo.name}",{OURS}}}[{MONTH}]))'
        for of in ("bad_requests", "requests")
    )
    return f"1 - {bad} / {requests} / {round(1 - slo.objective, 4)}"


def objectives():
    budgets = [Query(budget(slo), slo.name) for slo in SLOS]
    red_below = [(0, "yellow"), (0.25, "green")]
    ratios = f"shortmint:slo_bad_requests:ratio_rate1h{{{OURS}}}"
    return Row(
        "Objectives, over 30 days",
        [
            Panel(
                "Error budget left",
                budgets,
                "percentunit",
                "stat",
                24,
                5,
                "Availability: 99.9 % without 5xx. Latency: 99 % of redirects within 25 ms, and of creates "
                "within 500 ms.",
                [(-1000, "red"), *red_below],
            ),
            Panel(
                "Bad requests over one hour", [Query(ratios, "{{slo}} {{job}}")], "percentunit", width=12
            ),
            Panel(
                "Alerts",
                [
                    Query(
                        'sum by (alertname, severity) (ALERTS{alertname=~"Shortmint.+",alertstate="firing"})'
                    )
                ],
                kind="table",
                width=12,
            ),
        ],
    )


def traffic():
    rate = "sum by (status) (rate(resolver_request_duration_seconds_count{%s}[$__rate_interval]))"
    return Row(
        "Traffic",
        [
            Panel(
                "Redirects",
                [Query(rate % f'route="redirect",{OURS}', "{{status}}")],
                "reqps",
                stacked=True,
            ),
            Panel(
                "Links created",
                [Query(f"sum(rate(resolver_creates_total{{{OURS}}}[$__rate_interval]))", "links")],
                "cps",
            ),
            Panel(
                "Numbers issued",
                [Query(f"sum(shortmint:numbers_issued:rate5m{{{OURS}}})", "numbers")],
                "cps",
                about="The sum over all issuers. A block has many numbers, so this moves in steps.",
            ),
        ],
    )


def platform():
    return Row(
        "Platform",
        [
            Panel(
                "Leaders",
                [Query(f"shortmint:leaders:count{{{OURS}}}", "{{job}}")],
                kind="stat",
                width=4,
                lines=[(0, "red"), (1, "green"), (2, "red")],
            ),
            Panel(
                "Issuers and resolvers",
                [
                    Query(f"shortmint:issuers:count{{{OURS}}}", "issuers {{job}}"),
                    Query(f"shortmint:resolvers:count{{{OURS}}}", "resolvers {{job}}"),
                ],
                kind="stat",
                width=8,
                lines=[(0, "red"), (1, "yellow"), (2, "green")],
            ),
            Panel(
                "Shortest supply of numbers",
                [Query('min by (job) (resolver_supply_seconds{job=~"$job"} < Inf)', "{{job}}")],
                "s",
                kind="stat",
                width=6,
                about="How long creates continue without an issuer. Without a value nothing is created.",
                lines=[(0, "red"), (120, "green")],
            ),
            Panel(
                "Smallest share of numbers left",
                [
                    Query(
                        'min by (keyspace) (shortmint:keyspace_remaining:ratio{job=~"$job"})',
                        "{{keyspace}}",
                    )
                ],
                "percentunit",
                kind="stat",
                width=6,
                lines=[(0, "red"), (0.02, "yellow"), (0.1, "green")],
            ),
            Panel(
                "Versions",
                [
                    Query(f"count by (version) (issuer_build_info{{{OURS}}})", "issuer {{version}}"),
                    Query(f"count by (version) (resolver_build_info{{{OURS}}})", "resolver {{version}}"),
                ],
                width=12,
                stacked=True,
            ),
            Panel(
                "Certificates end in",
                [
                    Query(
                        f"min by (certificate) (issuer_{EXPIRY}{{{OURS}}}) - time()",
                        "issuer: {{certificate}}",
                    ),
                    Query(
                        f"min by (certificate) (resolver_{EXPIRY}{{{OURS}}}) - time()",
                        "resolver: {{certificate}}",
                    ),
                ],
                "s",
                "bargauge",
                12,
                lines=[(0, "red"), (3 * 86_400, "yellow"), (14 * 86_400, "green")],
            ),
        ],
    )


def board():
    about = "Objectives of the platform, its traffic, and whether all parts are there."
    return dashboard("overview", "Overview", about, [objectives(), traffic(), platform()])
