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

    def rule(self, _runbooks):
        labels = {"labels": self.labels} if self.labels else {}
        return {"record": self.name, "expr": tidy(self.expr), **labels}


@dataclass(frozen=True)
class Alert:
    """An alert. `summary` and `description` are templates of Prometheus."""

    name: str
    severity: str
    expr: str
    summary: str
    description: str
    for_: str = "0m"

    def rule(self, runbooks):
        return {
            "alert": self.name,
            "expr": tidy(self.expr),
            "for": self.for_,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": one_line(self.summary),
                "description": one_line(self.description),
                "runbook_url": f"{runbooks}{self.name}.md",
            },
        }


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated together, in this order."""

    name: str
    rules: list
    # The server's own interval if absent.
    interval: str = ""

    def section(self, runbooks):
        interval = {"interval": self.interval} if self.interval else {}
        return {"name": self.name, **interval, "rules": [rule.rule(runbooks) for rule in self.rules]}


def tidy(expr):
    """Removes the indentation that an expression has in the source."""
    return dedent(expr).strip()


def one_line(text):
    return " ".join(text.split())
