"""Visits on their way into the store, the databases, and webhooks."""

from .grafana import Panel, Query, Row, dashboard
from .panels import latency, rates
from .visits import SPOOL_SHARE

OURS = 'job=~"$job",namespace=~"$namespace"'
POD = "{{pod}} {{instance}}"


def visits():
    dropped = f"sum by (pod, reason) (rate(resolver_visits_dropped_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Visits",
        [
            rates(
                "Recorded and stored",
                [
                    ("resolver_visits_total", "recorded {{pod}}"),
                    ("resolver_orphan_visits_total", "orphans recorded {{pod}}"),
                    ("resolver_visits_stored_total", "stored {{pod}}"),
                ],
                OURS,
            ),
            Panel("Dropped", [Query(dropped, "{{pod}} {{reason}}")], "cps", stacked=True),
            Panel("Blocks that wait", [Query(f"resolver_visit_blocks_waiting{{{OURS}}}", POD)]),
            Panel(
                "Oldest visit that waits",
                [Query(f"resolver_visit_oldest_waiting_seconds{{{OURS}}}", POD)],
                "s",
                lines=[(300, "red")],
            ),
            Panel(
                "Spool",
                [Query(f"resolver_visit_spool_bytes{{{OURS}}} / resolver_visit_spool_bytes_max", POD)],
                "percentunit",
                lines=[(SPOOL_SHARE, "red")],
            ),
            Panel("Rows that wait for ClickHouse", [Query(f"resolver_visit_rows_waiting{{{OURS}}}", POD)]),
            Panel(
                "Fenced",
                [Query(f"max by (job) (resolver_visits_fenced{{{OURS}}})", "{{job}}")],
                kind="stat",
                about="1: another process stores the spool of one of these.",
                lines=[(1, "red")],
            ),
            rates(
                "Batches",
                [
                    ("resolver_visit_batches_total", "stored {{pod}}"),
                    ("resolver_visit_batches_in_doubt_total", "in doubt {{pod}}"),
                    ("resolver_visit_blocks_malformed_total", "malformed {{pod}}"),
                    ("resolver_visit_spool_errors_total", "failed reads {{pod}}"),
                ],
                OURS,
            ),
            rates(
                "Simplified or deleted before they were stored",
                [
                    ("resolver_visit_agents_other_total", "user agents {{pod}}"),
                    ("resolver_visit_texts_other_total", "texts {{pod}}"),
                    ("resolver_visits_deleted_before_stored_total", "deleted {{pod}}"),
                ],
                OURS,
                width=16,
                about="Of too many new user agents or texts at once, some are kept as (other).",
            ),
        ],
    )


def database():
    connections = f"sum by (pool, state) (resolver_database_connections{{{OURS}}})"
    busy = f'sum without (pool, state) (resolver_database_connections{{state="busy",{OURS}}})'
    errors = f"sum by (sqlstate) (rate(resolver_database_errors_total{{{OURS}}}[$__rate_interval]))"
    behind = f"sum by (pod) (rate(resolver_replica_behind_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Database",
        [
            Panel("Errors by SQLSTATE", [Query(errors, "{{sqlstate}}")], "cps", stacked=True),
            latency("Wait for a connection", "resolver_database_wait_seconds", OURS, lines=[(0.25, "red")]),
            Panel("Connections", [Query(connections, "{{pool}} {{state}}")], stacked=True),
            Panel(
                "Connections in use",
                [Query(f"{busy} / resolver_database_connections_max", POD)],
                "percentunit",
                lines=[(0.9, "red")],
                maximum=1,
            ),
            Panel("Reads that a replica was too far behind for", [Query(behind, "{{pod}}")], "ops"),
            Panel(
                "Missing migrations",
                [Query(f"resolver_schema_version_expected{{{OURS}}} - resolver_schema_version", POD)],
                kind="stat",
                lines=[(1, "red")],
            ),
        ],
    )


def webhooks():
    attempts = f"sum by (outcome) (rate(resolver_webhook_attempts_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Webhooks",
        [
            Panel("Attempts", [Query(attempts, "{{outcome}}")], "cps", stacked=True),
            Panel(
                "Open deliveries",
                [Query(f"max by (job) (resolver_webhook_deliveries_open{{{OURS}}})", "{{job}}")],
                about="Every resolver of a database shows the same number.",
            ),
            Panel(
                "Oldest delivery is due for",
                [Query(f"max by (job) (resolver_webhook_overdue_seconds{{{OURS}}})", "{{job}}")],
                "s",
                lines=[(600, "red")],
            ),
            rates(
                "Dropped, and webhooks disabled",
                [
                    ("resolver_webhook_deliveries_dropped_total", "dropped"),
                    ("resolver_webhooks_disabled_total", "disabled"),
                ],
                OURS,
                by="job",
            ),
        ],
    )


def board():
    about = "Visits on their way into the store, database connections and errors, and webhooks."
    return dashboard("stores", "Visits and stores", about, [visits(), database(), webhooks()])
