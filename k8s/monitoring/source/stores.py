"""Alerts on the database, as the resolvers see it."""

from .model import CRITICAL, WARNING, Alert, Group
from .promql import quantile, silent

# The resolver has its own answers to these: a number or slug is taken (class 23), a transaction is
# tried again (class 40), a migration or a batch of slugs waits for a lock (55P03). Lost connections
# are the alerts on silence.
EXPECTED = "23...|40...|55P03|lost|timeout"

ALERTS = [
    Alert(
        "ShortmintDatabaseUnreachable",
        CRITICAL,
        silent("database", 60),
        "Postgres does not answer.",
        """{{ $value }} resolvers of {{ $labels.job }} have had no answer from Postgres for a minute. Creates
        and edits fail; redirects of cached links continue. Visits wait in the spools.""",
        "1m",
        outage="postgres",
    ),
    Alert(
        "ShortmintDatabaseErrors",
        WARNING,
        f"""
        sum by (job, namespace, server, sqlstate) (
          rate(resolver_database_errors_total{{sqlstate!~"{EXPECTED}"}}[5m])
        ) > 0.05
        """,
        "Postgres answers with errors.",
        """{{ $value | humanize }} errors/s of SQLSTATE {{ $labels.sqlstate }} in {{ $labels.job }}, from
        the {{ $labels.server }}.""",
        "10m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintDatabaseWaitLong",
        WARNING,
        quantile(0.99, "resolver_database_wait_seconds", ["job", "namespace", "pool"]) + " > 0.25",
        "Calls wait long for a database connection.",
        """The 99th percentile of the wait for pool {{ $labels.pool }} of {{ $labels.job }} is {{ $value |
        humanizeDuration }}.""",
        "10m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintDatabaseConnectionsExhausted",
        WARNING,
        """
        max by (job, namespace, pool) (
          resolver_database_connections{state="busy",pool!="writers"} / ignoring (state) resolver_database_connections_max
        ) > 0.9
        """,
        "A pool of database connections is in use.",
        """{{ $value | humanizePercentage }} of pool {{ $labels.pool }} of a resolver of {{ $labels.job }}
        are busy.""",
        "10m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintSchemaOutdated",
        WARNING,
        "max by (job, namespace) (resolver_schema_version_expected - resolver_schema_version) > 0",
        "The database's schema is older than the resolver.",
        """{{ $value }} migrations are missing for a resolver of {{ $labels.job }}. Run the migration of its
        version.""",
        "10m",
    ),
    Alert(
        "ShortmintDatabaseNodeAway",
        CRITICAL,
        "max by (job, namespace) (resolver_database_nodes_away) > 0",
        "A node of Citus does not answer.",
        """{{ $value }} nodes have not answered a resolver of {{ $labels.job }} for two minutes. Their links
        redirect from caches only; creates get numbers of the others.""",
        "2m",
        outage="postgres",
    ),
    Alert(
        "ShortmintReplicaUnreachable",
        WARNING,
        silent("replica", 60),
        "The replica does not answer.",
        """{{ $value }} resolvers of {{ $labels.job }} have had no answer from --read-database. The primary
        answers its reads.""",
        "5m",
    ),
    Alert(
        "ShortmintReplicaBehind",
        WARNING,
        """
        sum by (job, namespace) (rate(resolver_replica_reads_total{result="behind"}[5m]))
        /
        sum by (job, namespace) (rate(resolver_replica_reads_total[5m]))
        > 0.1
        """,
        "The replica is too far behind to answer reads.",
        """{{ $value | humanizePercentage }} of the reads for the replica in {{ $labels.job }} went to the
        primary, because the replica was too far behind.""",
        "15m",
    ),
]


def group():
    return Group("database", ALERTS)
