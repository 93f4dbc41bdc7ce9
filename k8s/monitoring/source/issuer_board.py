"""Issuers: leadership, the ledger in etcd, and where the numbers are."""

from .grafana import Panel, Query, Row, dashboard
from .panels import heatmap, latency, processes, rates

OURS = 'job=~"$job",namespace=~"$namespace"'
KEYED = 'job=~"$job"'


def leadership():
    changes = f"max by (job) (increase(issuer_leader_changes_total{{{OURS}}}[1h]))"
    return Row(
        "Leadership",
        [
            Panel(
                "Leader",
                [Query(f"issuer_leader{{{OURS}}}", "{{pod}} {{instance}}")],
                about="1 while an issuer leads and serves.",
                maximum=1,
            ),
            Panel(
                "Epoch",
                [Query(f"max by (job) (issuer_epoch{{{OURS}}})", "{{job}}")],
                about="A revision of etcd; it grows with each leader.",
            ),
            Panel("Changes of the leader in an hour", [Query(changes, "{{job}}")]),
            Panel(
                "Lease of the leader",
                [Query(f"issuer_lease_remaining_seconds{{{OURS}}} > 0", "{{pod}} {{instance}}")],
                "s",
                about="How long it lasts if etcd answers no more keep-alives. In order, it stays above three "
                "quarters of --lease-ttl.",
            ),
            latency("Keep-alives", "issuer_keep_alive_duration_seconds", OURS),
            rates("Failed calls to etcd", [("issuer_election_errors_total", "{{pod}}")], OURS),
        ],
    )


def ledger():
    results = f"sum by (result) (rate(issuer_transactions_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Ledger",
        [
            Panel("Transactions", [Query(results, "{{result}}")], "ops", stacked=True),
            latency("Transactions in etcd", "issuer_transaction_duration_seconds", OURS),
            heatmap("Transactions, all durations", "issuer_transaction_duration_seconds", OURS),
            rates(
                "Calls",
                [
                    ("issuer_allocations_total", "allocations {{pod}}"),
                    ("issuer_refusals_total", "refused {{pod}}"),
                ],
                OURS,
            ),
            latency("Allocations", "issuer_allocation_duration_seconds", OURS),
            Panel("Holders alive", [Query(f"max by (job) (issuer_holders_alive{{{OURS}}})", "{{job}}")]),
        ],
    )


def numbers():
    issued = f"sum(rate(issuer_numbers_issued_total{{{OURS}}}[5m]))"
    keyspace = "{{keyspace}}"
    return Row(
        "Numbers",
        [
            Panel("Numbers issued", [Query(issued, "numbers")], "cps", about="The sum over all issuers."),
            Panel(
                "Left",
                [Query(f"min by (keyspace) (shortmint:keyspace_remaining:ratio{{{KEYED}}})", keyspace)],
                "percentunit",
                lines=[(0, "red"), (0.1, "green")],
                maximum=1,
            ),
            Panel(
                "Lasts",
                [
                    Query(
                        f"min by (keyspace) (shortmint:keyspace_exhaustion_seconds:min{{{KEYED}}}) < Inf",
                        keyspace,
                    )
                ],
                "s",
                about="At the rate of the last six hours. Without a value, no number was allocated.",
            ),
            Panel(
                "Where the numbers are",
                [
                    Query(
                        f"max by (keyspace, state) (shortmint:keyspace_numbers:max{{{KEYED}}})",
                        "{{keyspace}} {{state}}",
                    )
                ],
                stacked=True,
                width=12,
            ),
            Panel(
                "Unaccounted (always 0)",
                [Query(f"max by (keyspace) (shortmint:keyspace_unaccounted:max{{{KEYED}}})", keyspace)],
                kind="stat",
                width=4,
                lines=[(1, "red")],
            ),
            Panel(
                "Allocated, not used yet",
                [
                    Query(
                        f"max by (exported_namespace, namespace) (issuer_numbers_in_hand{{{KEYED}}})",
                        "{{exported_namespace}} {{namespace}}",
                    )
                ],
            ),
            Panel(
                "Allocated and capacity",
                [
                    Query(
                        f"max by (keyspace) (shortmint:keyspace_allocated:max{{{KEYED}}})",
                        "allocated {{keyspace}}",
                    ),
                    Query(
                        f"max by (exported_namespace, namespace) (issuer_namespace_capacity{{{KEYED}}})",
                        "capacity {{exported_namespace}} {{namespace}}",
                    ),
                ],
                width=24,
            ),
        ],
    )


def board():
    about = "Leadership, the ledger in etcd, and where the numbers of each keyspace are."
    return dashboard(
        "issuer", "Issuers and numbers", about, [leadership(), ledger(), numbers(), processes("issuer")]
    )
