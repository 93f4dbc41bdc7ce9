"""Alerts on the way of visits into the store, and on webhooks."""

from .model import CRITICAL, WARNING, Alert, Group
from .promql import POD, SILENCE

# Part of the size at which a resolver drops visits (visits-spool-mib).
SPOOL_SHARE = 0.6
SPOOL_FILLED = "resolver_visit_spool_bytes / resolver_visit_spool_bytes_max"

ALERTS = [
    Alert(
        "ShortmintVisitsDropped",
        WARNING,
        "sum by (job, namespace, reason) (increase(resolver_visits_dropped_total[15m])) > 0",
        "Visits are lost before they are spooled.",
        """{{ $value | printf "%.0f" }} visits of {{ $labels.job }} were dropped in 15 minutes (reason: {{
        $labels.reason }}). Redirects are not affected; statistics lack these visits for good.""",
    ),
    Alert(
        "ShortmintVisitsFenced",
        WARNING,
        "resolver_visits_fenced == 1",
        "Two processes share one spool, and one has stopped storing visits.",
        f"""The visits of {POD} are not stored (resolver_visits_fenced is {{{{ $value }}}}). They wait in
        its spool until it is full.""",
        "5m",
    ),
    Alert(
        "ShortmintVisitsNotStored",
        WARNING,
        """
        max by (job, namespace) (resolver_visit_oldest_waiting_seconds) > 300
        or
        max by (job, namespace) (
          time() - resolver_visit_last_stored_timestamp_seconds and increase(resolver_visits_total[5m]) > 0
        ) > 300
        """,
        "Visits are not stored in time.",
        """Visits of a resolver of {{ $labels.job }} have not been stored for {{ $value | humanizeDuration }}.
        Statistics and webhooks are late by that much.""",
        "5m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintVisitSlotsExhausted",
        WARNING,
        "max by (job, namespace) (resolver_visit_slots_used / resolver_visit_slots_max) > 0.95",
        "Nearly all slots of processes that store visits are taken.",
        """{{ $value | humanizePercentage }} of the slots are taken. A resolver of {{ $labels.job }} without one
        stores no visits, which wait in its spool. A slot is free five minutes after its process has ended.""",
        "5m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintVisitSpoolLarge",
        CRITICAL,
        f"max by (job, namespace) ({SPOOL_FILLED}) > {SPOOL_SHARE}",
        "A spool of visits is nearly full.",
        """The fullest spool of {{ $labels.job }} is at {{ $value | humanizePercentage }} of
        visits-spool-mib of --limit. When it is full, further visits are dropped.""",
        "5m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintVisitSpoolFaulty",
        WARNING,
        """
        increase(resolver_visit_spool_errors_total[15m])
        + increase(resolver_visit_blocks_malformed_total[15m])
        > 0
        """,
        "A spool of visits cannot be read.",
        f"""Failed reads and malformed blocks in the spool of {POD} in 15 minutes: {{{{ $value | printf
        "%.0f" }}}}.""",
    ),
    # A pod that ended in order or by a crash is no target any more; one that is started again is.
    Alert(
        "ShortmintVisitsLeftBehind",
        WARNING,
        """
        count by (job, namespace) (
          last_over_time(resolver_visit_oldest_waiting_seconds[30m]) > 60
          unless on (job, namespace, instance) up
        )
        """,
        "Resolvers ended while their visits waited for the store.",
        """{{ $value }} resolvers of {{ $labels.job }} have ended within 30 minutes while visits waited in
        their spools. Unless the spool is on a volume that outlives the pod, these visits are lost.""",
    ),
    # Two days and an hour are usual. Visits that a spool brings after days are closed within an
    # hour.
    Alert(
        "ShortmintVisitDaysOpen",
        WARNING,
        f"max by (job, namespace) (resolver_visit_oldest_open_seconds) > {4 * 86_400}",
        "Past days of visits are not closed.",
        """The oldest day of {{ $labels.job }} whose counters of visits are not closed began
        {{ $value | humanizeDuration }} ago. Until it is closed, it takes several times its space.""",
        "90m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintVisitRowsWaiting",
        WARNING,
        f"""
        max by (job, namespace) (
          resolver_visit_rows_oldest_waiting_seconds or {SILENCE}{{server="clickhouse"}}
        ) > 600
        """,
        "ClickHouse does not take the rows of visits.",
        """ClickHouse has not taken rows of {{ $labels.job }} for {{ $value | humanizeDuration }}. Visits are
        counted and wait for it; lists of visits lack them. Without it, statistics beyond yesterday answer 503.""",
    ),
    Alert(
        "ShortmintWebhooksOverdue",
        WARNING,
        "max by (job, namespace) (resolver_webhook_overdue_seconds) > 600",
        "Webhooks are delivered late.",
        """The oldest delivery in {{ $labels.job }} has been due for {{ $value | humanizeDuration }}. A
        failing receiver does not cause this: its next attempt is due later.""",
        "10m",
        follows=("postgres",),
    ),
    Alert(
        "ShortmintWebhookDeliveriesDropped",
        WARNING,
        "sum by (job, namespace) (increase(resolver_webhook_deliveries_dropped_total[15m])) > 0",
        "Deliveries of webhooks are dropped.",
        """{{ $value | printf "%.0f" }} deliveries in {{ $labels.job }} were dropped in 15 minutes, because
        as many were open for their webhook as there may be.""",
    ),
    Alert(
        "ShortmintWebhooksDisabled",
        WARNING,
        "sum by (job, namespace) (increase(resolver_webhooks_disabled_total[1h])) > 0",
        "Webhooks were disabled, because their receivers fail.",
        """{{ $value | printf "%.0f" }} webhooks of {{ $labels.job }} were disabled in an hour. Their events
        are not delivered until their owners enable them again.""",
    ),
]


def group():
    return Group("visits", ALERTS)
