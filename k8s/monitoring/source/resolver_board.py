"""Resolvers: requests, the cache, creates, the numbers in hand, and refusals."""

from .grafana import Panel, Query, Row, dashboard
from .panels import heatmap, latency, processes, rates

OURS = 'job=~"$job",namespace=~"$namespace"'
# Metrics with a keyspace as their own label `namespace`.
KEYED = 'job=~"$job"'
KEY = "{{pod}} {{exported_namespace}}{{namespace}}"
REQUESTS = "resolver_request_duration_seconds"
CALLS = "resolver_grpc_request_duration_seconds"


def requests():
    by_route = f"sum by (route) (rate({REQUESTS}_count{{{OURS}}}[$__rate_interval]))"
    failed = f'sum by (route, status) (rate({REQUESTS}_count{{status=~"5..",{OURS}}}[$__rate_interval]))'
    calls = f"sum by (method, code) (rate({CALLS}_count{{{OURS}}}[$__rate_interval]))"
    redirect, create = f'route="redirect",{OURS}', f'route="create_short_url",{OURS}'
    return Row(
        "Requests",
        [
            Panel("Requests by route", [Query(by_route, "{{route}}")], "reqps", stacked=True),
            Panel("Answers 5xx", [Query(failed, "{{route}} {{status}}")], "reqps", stacked=True),
            Panel("Calls over gRPC", [Query(calls, "{{method}} {{code}}")], "reqps", stacked=True),
            latency("Redirects", REQUESTS, redirect, lines=[(0.025, "red")]),
            heatmap("Redirects, all durations", REQUESTS, redirect),
            latency("Creates by REST", REQUESTS, create, lines=[(0.5, "red")]),
        ],
    )


def cache():
    hits = f"sum by (pod) (rate(resolver_cache_hits_total{{{OURS}}}[$__rate_interval]))"
    asked = f"sum by (pod) (rate(resolver_links_asked_total{{{OURS}}}[$__rate_interval]))"
    reads = f"sum by (pod) (rate(resolver_link_reads_total{{{OURS}}}[$__rate_interval]))"
    behind = f"sum by (pod) (rate(resolver_replica_behind_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Lookups",
        [
            Panel(
                "Found in the shared cache",
                [Query(f"{hits} / ({hits} + {asked})", "{{pod}}")],
                "percentunit",
                about="Each listener's thread has a table of its own in front of the shared cache. Lookups "
                "that this table answers are not part of either count.",
                maximum=1,
            ),
            Panel(
                "Reads from the database",
                [
                    Query(reads, "reads {{pod}}"),
                    Query(asked, "links {{pod}}"),
                    Query(behind, "replica behind {{pod}}"),
                ],
                "ops",
                about="One read asks for up to 128 links.",
            ),
            rates(
                "Codes without a link",
                [
                    ("resolver_not_found_total", "404 {{pod}}"),
                    ("resolver_codes_ruled_out_total", "without a query {{pod}}"),
                    ("resolver_unknown_codes_refused_total", "429 {{pod}}"),
                ],
                OURS,
            ),
        ],
    )


def creates():
    size = (
        f"sum by (pod) (rate(resolver_creates_total{{{OURS}}}[$__rate_interval]))"
        f" / sum by (pod) (rate(resolver_insert_batches_total{{{OURS}}}[$__rate_interval]))"
    )
    return Row(
        "Creates",
        [
            rates("Links created", [("resolver_creates_total", "{{pod}}")], OURS),
            latency("Time of a create, without HTTP", "resolver_create_duration_seconds", OURS),
            Panel("Links created for each batched insert", [Query(size, "{{pod}}")]),
            rates(
                "Conflicts and doubts",
                [
                    ("resolver_conflicts_total", "conflicts {{pod}}"),
                    ("resolver_inserts_unknown_total", "in doubt {{pod}}"),
                    ("resolver_numbers_burned_total", "burned {{pod}}"),
                ],
                OURS,
            ),
            rates(
                "Refusals",
                [
                    ("resolver_unavailable_total", "503 {{pod}}"),
                    ("resolver_connections_refused_total", "connections {{pod}}"),
                ],
                OURS,
            ),
            rates("Links removed because unvisited", [("resolver_links_removed_total", "{{pod}}")], OURS),
        ],
    )


def supply():
    return Row(
        "Numbers in hand",
        [
            Panel("Numbers in hand", [Query(f"resolver_numbers_in_hand{{{KEYED}}}", KEY)]),
            Panel(
                "Supply",
                [Query(f"resolver_supply_seconds{{{KEYED}}} < Inf", KEY)],
                "s",
                about="How long the numbers in hand last at the rate of the last minute.",
                lines=[(120, "red")],
            ),
            Panel("Claims", [Query(f"resolver_claims_per_second{{{KEYED}}}", KEY)], "cps"),
            latency("Time from wanting a block to having it", "resolver_refill_duration_seconds", OURS),
            rates(
                "Blocks refused",
                [
                    ("resolver_refills_failed_total", "by the issuer {{pod}}"),
                    ("resolver_blocks_overlapping_total", "overlapping {{pod}}"),
                ],
                OURS,
            ),
            rates(
                "Numbers reclaimed and reserved",
                [
                    ("resolver_numbers_reclaimed_total", "reclaimed {{pod}}"),
                    ("resolver_numbers_reserved_total", "reserved {{pod}}"),
                ],
                OURS,
            ),
            Panel(
                "Pool of numbers whose insert failed",
                [Query(f"resolver_pool_numbers{{{KEYED}}}", KEY)],
                about="They are used before the block.",
            ),
            Panel(
                "Pool overflows",
                [Query(f"rate(resolver_pool_overflows_total{{{KEYED}}}[$__rate_interval])", KEY)],
                "cps",
                about="Grows if the database refuses every insert.",
            ),
        ],
    )


def board():
    about = "Requests, lookups, creates and numbers of the resolvers."
    return dashboard(
        "resolver", "Resolvers", about, [requests(), cache(), creates(), supply(), processes("resolver")]
    )
