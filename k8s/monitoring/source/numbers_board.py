"""Numbers: leadership and etcd, the ledger, and what resolvers have in hand."""

from .grafana import Panel, Query, Row, dashboard
from .panels import OURS, latency, rates

# Metrics with a keyspace as their own label `namespace`.
KEYED = 'job=~"$job"'
KEY = "{{pod}} {{exported_namespace}}{{namespace}}"


def leadership():
    changes = f"max by (job) (increase(issuer_leader_changes_total{{{OURS}}}[1h]))"
    results = f"sum by (result) (rate(issuer_transactions_total{{{OURS}}}[$__rate_interval]))"
    return Row(
        "Issuers and etcd",
        [
            Panel("Leader", [Query(f"issuer_leader{{{OURS}}}", "{{pod}} {{instance}}")], maximum=1),
            Panel("Changes of the leader in an hour", [Query(changes, "{{job}}")]),
            Panel(
                "Lease of the leader",
                [Query(f"issuer_lease_remaining_seconds{{{OURS}}} > 0", "{{pod}} {{instance}}")],
                "s",
                about="How long it lasts if etcd answers no more keep-alives. In order, it stays above three "
                "quarters of --lease-ttl.",
            ),
            Panel("Transactions of the ledger", [Query(results, "{{result}}")], "ops", stacked=True),
            latency("Transactions in etcd", "issuer_transaction_duration_seconds", OURS, lines=[(0.25, "red")]),
            latency("Keep-alives", "issuer_keep_alive_duration_seconds", OURS, lines=[(0.5, "red")]),
        ],
    )


def ledger():
    lasts = f"min by (keyspace) (shortmint:keyspace_exhaustion_seconds:min{{{KEYED}}}) < Inf"
    where = f"max by (keyspace, state) (shortmint:keyspace_numbers:max{{{KEYED}}})"
    return Row(
        "Keyspaces",
        [
            Panel(
                "Left",
                [Query(f"min by (keyspace) (shortmint:keyspace_remaining:ratio{{{KEYED}}})", "{{keyspace}}")],
                "percentunit",
                "stat",
                lines=[(0, "red"), (0.1, "green")],
            ),
            Panel(
                "Lasts",
                [Query(lasts, "{{keyspace}}")],
                "s",
                "stat",
                about="At the rate of the last six hours. Without a value, no number was allocated.",
                lines=[(0, "red"), (3 * 86_400, "yellow"), (30 * 86_400, "green")],
            ),
            Panel("Where the numbers are", [Query(where, "{{keyspace}} {{state}}")], stacked=True),
        ],
    )


def supply():
    refused = f"sum by (reason) (rate(resolver_refills_failed_total{{{OURS}}}[$__rate_interval]))"
    overlapping = f"sum(rate(resolver_blocks_overlapping_total{{{OURS}}}[$__rate_interval]))"
    holders = f"sum(issuer_holders_alive{{{OURS}}} and issuer_leader == 1)"
    return Row(
        "Resolvers' numbers",
        [
            Panel("Numbers in hand", [Query(f"resolver_numbers_in_hand{{{KEYED}}}", KEY)]),
            Panel(
                "Supply",
                [Query(f"resolver_supply_seconds{{{KEYED}}} < Inf", KEY)],
                "s",
                about="How long the numbers in hand last at the rate of the last minute.",
                lines=[(240, "red")],
            ),
            Panel("Holders alive", [Query(holders, "holders")]),
            latency("Time from wanting a block to having it", "resolver_refill_duration_seconds", OURS),
            Panel("Blocks not had", [Query(refused, "{{reason}}"), Query(overlapping, "overlapping")], "cps"),
            rates(
                "Conflicts and doubts",
                [
                    ("resolver_conflicts_total", "conflicts {{pod}}"),
                    ("resolver_inserts_unknown_total", "in doubt {{pod}}"),
                    ("resolver_numbers_burned_total", "burned {{pod}}"),
                ],
                OURS,
            ),
        ],
    )


def board():
    about = "Leadership, the ledger in etcd, and the numbers that resolvers have in hand."
    return dashboard("numbers", "Numbers", about, [leadership(), ledger(), supply()])
