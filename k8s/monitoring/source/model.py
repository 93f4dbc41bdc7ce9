"""The values that rules consist of."""

from dataclasses import dataclass, field
from textwrap import dedent

# A page for a person at any hour, or a ticket for working hours.
CRITICAL, WARNING = "critical", "warning"

# The part of a runbook's URL that is the same everywhere: its path in this repository.
RUNBOOKS = "k8s/runbooks/"


@dataclass(frozen=True)
class Record:
    """A recording rule."""

    name: str
    expr: str
    labels: dict = field(default_factory=dict)

    def rule(self, _page):
        labels = {"labels": self.labels} if self.labels else {}
        return {"record": self.name, "expr": tidy(self.expr), **labels}


@dataclass(frozen=True)
class Alert:
    """An alert. `summary` and `description` are templates of Prometheus.

    An alert with an `outage` keeps those that name it in `follows` quiet: see `inhibition.py`.
    """

    name: str
    severity: str
    expr: str
    summary: str
    description: str
    for_: str = "0m"
    outage: str = ""
    follows: tuple = ()

    def rule(self, page):
        return {
            "alert": self.name,
            "expr": tidy(self.expr),
            "for": self.for_,
            "labels": self.labels(),
            "annotations": {
                "summary": one_line(self.summary),
                "description": one_line(self.description),
                "runbook_url": f"{page}#{self.name.lower()}",
            },
        }

    def labels(self):
        outage = {"outage": self.outage} if self.outage else {}
        follows = {"follows": ",".join(self.follows)} if self.follows else {}
        return {"severity": self.severity, **outage, **follows}


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated together, in this order, and whose alerts share a page of the runbooks."""

    name: str
    rules: list
    # The server's own interval if absent.
    interval: str = ""

    def section(self, runbooks):
        interval = {"interval": self.interval} if self.interval else {}
        page = f"{runbooks}{self.page}"
        return {"name": f"shortmint-{self.name}", **interval, "rules": [rule.rule(page) for rule in self.rules]}

    @property
    def page(self):
        return f"{self.name}.md"


def tidy(expr):
    """Removes the indentation that an expression has in the source."""
    return dedent(expr).strip()


def one_line(text):
    return " ".join(text.split())
