"""Alerts on the way of visits into the store, and on webhooks."""

from .model import CRITICAL, WARNING, Alert, Group
from .promql import POD

# Part of the size at which a resolver drops visits (RESOLVER_VISITS_SPOOL_MIB).
SPOOL_SHARE = 0.6
SPOOL_FILLED = "resolver_visit_spool_bytes / resolver_visit_spool_bytes_max"

ALERTS = [
    Alert(
        "ShortmintVisitsDropped",
        WARNING,
        "increase(resolver_visits_dropped_total[15m]) > 0",
        "Visits are lost before they are spooled.",
        f"""{{{{ $value | printf "%.0f" }}}} visits of {POD} were dropped in 15 minutes (reason: {{{{
        $labels.reason }}}}). Redirects are not affected; statistics lack these visits for good.""",
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
        "ShortmintVisitBacklogGrowing",
        WARNING,
        "resolver_visit_oldest_waiting_seconds > 300",
        "Visits are not stored in time.",
        f"""The oldest visit in the spool of {POD} has waited for {{{{ $value | humanizeDuration }}}}.
        Statistics and webhooks are late by that much.""",
        "5m",
    ),
    Alert(
        "ShortmintVisitSlotsExhausted",
        WARNING,
        "increase(resolver_visit_slots_missing_total[10m]) > 0",
        "All slots of processes that store visits are taken.",
        f"""{POD} found none of the 128 slots free in 10 minutes, and stores no visits. They wait in its
        spool. A slot is free five minutes after its process has ended.""",
        "5m",
    ),
    Alert(
        "ShortmintVisitSpoolLarge",
        CRITICAL,
        f"{SPOOL_FILLED} > {SPOOL_SHARE}",
        "A spool of visits is nearly full.",
        f"""The spool of {POD} is at {{{{ $value | humanizePercentage }}}} of --visits-spool-mib. When it is
        full, further visits are dropped.""",
        "5m",
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
    Alert(
        "ShortmintVisitRowsWaiting",
        WARNING,
        "min_over_time(resolver_visit_rows_waiting[10m]) > 0",
        "ClickHouse does not take the rows of visits.",
        f"""At least {{{{ $value | humanize }}}} rows of {POD} have been counted and waiting for ClickHouse
        for 10 minutes. Lists of visits lack them; counts do not.""",
    ),
    Alert(
        "ShortmintWebhooksOverdue",
        WARNING,
        "max by (job, namespace) (resolver_webhook_overdue_seconds) > 600",
        "Webhooks are delivered late.",
        """The oldest delivery in {{ $labels.job }} has been due for {{ $value | humanizeDuration }}. A
        failing receiver does not cause this: its next attempt is due later.""",
        "10m",
    ),
    Alert(
        "ShortmintWebhookDeliveriesDropped",
        WARNING,
        "sum by (job, namespace) (increase(resolver_webhook_deliveries_dropped_total[15m])) > 0",
        "Deliveries of webhooks are dropped.",
        """{{ $value | printf "%.0f" }} deliveries in {{ $labels.job }} were dropped in 15 minutes, because
        as many were open for their webhook as there may be.""",
    ),
]


def group():
    return Group("shortmint-visits", ALERTS)
