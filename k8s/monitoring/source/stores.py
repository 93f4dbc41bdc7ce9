"""Alerts on the database, as the resolvers see it."""

from .model import CRITICAL, WARNING, Alert, Group
from .promql import POD, quantile

# The resolver has its own answers to these: a number or slug is taken (class 23), a transaction is tried
# again (class 40), a migration waits for a table (55P03).
EXPECTED = "23...|40...|55P03"

ALERTS = [
    Alert(
        "ShortmintDatabaseUnreachable",
        CRITICAL,
        'sum by (job, namespace) (rate(resolver_database_errors_total{sqlstate=~"lost|timeout"}[2m])) > 0.1',
        "Postgres is lost, or does not answer in time.",
        """{{ $value | humanize }} connections or answers are lost each second in {{ $labels.job }}.
        Creates and edits fail; redirects of cached links continue.""",
        "2m",
    ),
    Alert(
        "ShortmintDatabaseErrors",
        WARNING,
        f"""
        sum by (job, namespace, sqlstate) (
          rate(resolver_database_errors_total{{sqlstate!~"lost|timeout|{EXPECTED}"}}[5m])
        ) > 0.05
        """,
        "Postgres answers with errors.",
        "{{ $value | humanize }} errors/s of SQLSTATE {{ $labels.sqlstate }} in {{ $labels.job }}.",
        "10m",
    ),
    Alert(
        "ShortmintDatabaseWaitLong",
        WARNING,
        quantile(0.99, "resolver_database_wait_seconds", ["job", "namespace", "pod", "instance", "pool"])
        + " > 0.25",
        "Calls wait long for a database connection.",
        f"""The 99th percentile of the wait for pool {{{{ $labels.pool }}}} of {POD} is {{{{ $value |
        humanizeDuration }}}}.""",
        "10m",
    ),
    Alert(
        "ShortmintDatabaseConnectionsExhausted",
        WARNING,
        """
        sum without (pool, state) (resolver_database_connections{state="busy"})
        / resolver_database_connections_max
        > 0.9
        """,
        "A resolver has nearly all its database connections in use.",
        f"{{{{ $value | humanizePercentage }}}} of --database-connections of {POD} are busy.",
        "10m",
    ),
    Alert(
        "ShortmintSchemaOutdated",
        WARNING,
        "resolver_schema_version_expected - resolver_schema_version > 0",
        "The database's schema is older than the resolver.",
        f"{{{{ $value }}}} migrations are missing for {POD}. Run the migration of its version.",
        "10m",
    ),
    Alert(
        "ShortmintReplicaBehind",
        WARNING,
        """
        sum by (job, namespace) (rate(resolver_replica_behind_total[5m]))
        /
        sum by (job, namespace) (rate(resolver_link_reads_total[5m]))
        > 0.1
        """,
        "The replica is too far behind to answer reads.",
        """{{ $value | humanizePercentage }} of the reads of links in {{ $labels.job }} went to the
        primary, because the replica was too far behind.""",
        "15m",
    ),
]


def group():
    return Group("shortmint-stores", ALERTS)
