"""Resolvers: requests, lookups, Postgres, visits, webhooks and processes."""

from .grafana import Panel, Query, Row, dashboard
from .panels import OURS, latency, processes, rates

POD = "{{pod}} {{instance}}"
REQUESTS = "resolver_request_duration_seconds"
CALLS = "resolver_grpc_request_duration_seconds"


def requests():
    by_route = f"sum by (route) (rate({REQUESTS}_count{{{OURS}}}[$__rate_interval]))"
    failed = f'sum by (route, status) (rate({REQUESTS}_count{{status=~"5..",{OURS}}}[$__rate_interval]))'
    calls = f"sum by (method, code) (rate({CALLS}_count{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Requests",
        [
            Panel("Requests by route", [Query(by_route, "{{route}}")], "reqps", stacked=True),
            Panel("Answers 5xx", [Query(failed, "{{route}} {{status}}")], "reqps", stacked=True),
            Panel("Calls over gRPC", [Query(calls, "{{method}} {{code}}")], "reqps", stacked=True),
            latency("Redirects", REQUESTS, f'route="redirect",{OURS}', lines=[(0.025, "red")]),
            latency("Creates by REST", REQUESTS, f'route="create_short_url",{OURS}', lines=[(0.5, "red")]),
            rates(
                "Refused",
                [
                    ("resolver_not_found_total", "404 {{pod}}"),
                    ("resolver_unknown_codes_refused_total", "429 {{pod}}"),
                    ("resolver_unavailable_total", "503 {{pod}}"),
                    ("resolver_connections_refused_total", "connections {{pod}}"),
                ],
                OURS,
            ),
        ],
    )


def database():
    hits = f"sum by (pod) (rate(resolver_cache_hits_total{{{OURS}}}[$__rate_interval]))"
    asked = f"sum by (pod) (rate(resolver_links_asked_total{{{OURS}}}[$__rate_interval]))"
    busy = f'sum without (state) (resolver_database_connections{{state="busy",{OURS}}})'
    errors = f"sum by (server, sqlstate) (rate(resolver_database_errors_total{{{OURS}}}[$__rate_interval]))"
    replica = f"sum by (result) (rate(resolver_replica_reads_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Lookups and databases",
        [
            Panel(
                "Found in the shared cache",
                [Query(f"{hits} / ({hits} + {asked})", "{{pod}}")],
                "percentunit",
                about="Each listener's thread has a table of its own in front of the shared cache. Lookups "
                "that this table answers are not part of either count.",
                maximum=1,
            ),
            Panel("Links read from the database", [Query(asked, "{{pod}}")], "ops"),
            Panel("Reads for the replica", [Query(replica, "{{result}}")], "ops", stacked=True),
            Panel("Errors", [Query(errors, "{{server}} {{sqlstate}}")], "cps", stacked=True),
            latency("Wait for a connection", "resolver_database_wait_seconds", OURS, lines=[(0.25, "red")]),
            Panel(
                "Pools in use",
                [Query(f"max by (pool) ({busy} / resolver_database_connections_max)", "{{pool}}")],
                "percentunit",
                lines=[(0.9, "red")],
                maximum=1,
            ),
        ],
    )


def visits():
    dropped = f"sum by (reason) (rate(resolver_visits_dropped_total{{{OURS}}}[$__rate_interval]))"
    slots = "resolver_visit_slots_used{%s} / resolver_visit_slots_max" % OURS
    return Row(
        "Visits and webhooks",
        [
            Panel(
                "Recorded, stored, dropped",
                [
                    Query(f"sum(rate(resolver_visits_total{{{OURS}}}[$__rate_interval]))", "recorded"),
                    Query(f"sum(rate(resolver_visits_stored_total{{{OURS}}}[$__rate_interval]))", "stored"),
                    Query(dropped, "dropped: {{reason}}"),
                ],
                "cps",
            ),
            Panel(
                "Oldest that waits",
                [
                    Query(f"resolver_visit_oldest_waiting_seconds{{{OURS}}}", f"spool {POD}"),
                    Query(f"resolver_visit_rows_oldest_waiting_seconds{{{OURS}}}", f"ClickHouse {POD}"),
                ],
                "s",
                lines=[(300, "red")],
            ),
            Panel("Spool", [Query(f"resolver_visit_spool_bytes{{{OURS}}}", POD)], "bytes"),
            Panel("Slots in use", [Query(f"max({slots})", "slots")], "percentunit", lines=[(0.95, "red")], maximum=1),
            rates(
                "Attempts of webhooks",
                [("resolver_webhook_attempts_total", "{{outcome}}")],
                OURS,
                by="outcome",
            ),
            Panel(
                "Oldest delivery is due for",
                [Query(f"max by (job) (resolver_webhook_overdue_seconds{{{OURS}}})", "{{job}}")],
                "s",
                lines=[(600, "red")],
            ),
        ],
    )


def board():
    about = "Requests, lookups, databases, visits and webhooks of the resolvers, and all processes."
    return dashboard("resolver", "Resolvers", about, [requests(), database(), visits(), processes()])
