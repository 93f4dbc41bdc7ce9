"""Dashboards of Grafana as maps: panels, rows, and their places on the grid of 24 columns."""

from dataclasses import dataclass, field

TAG = "shortmint"
SOURCE = {"type": "prometheus", "uid": "${source}"}
HEIGHT = 8


@dataclass(frozen=True)
class Query:
    """An expression and the text of its series in the legend."""

    expr: str
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True)
class Panel:
    """A panel. `lines` are values at which the color changes: (value, color)."""

    title: str
    queries: list
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = HEIGHT
    about: str = ""
    lines: list = field(default_factory=list)
    stacked: bool = False
    maximum: float = None


@dataclass(frozen=True)
class Row:
    title: str
    panels: list


def dashboard(name, title, about, rows):
    return {
        "uid": f"{TAG}-{name}",
        "title": f"Shortmint / {title}",
        "description": about,
        "tags": [TAG],
        "schemaVersion": 39,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "links": [
            {
                "type": "dashboards",
                "tags": [TAG],
                "title": "Shortmint",
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "templating": {"list": [source_variable(), job_variable(), namespace_variable()]},
        "annotations": {"list": [versions()]},
        "panels": place(rows),
    }


def source_variable():
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def job_variable():
    return variable(
        "job", "Job", 'label_values({__name__=~"issuer_build_info|resolver_build_info"}, job)', ".+"
    )


def namespace_variable():
    query = 'label_values({__name__=~"issuer_build_info|resolver_build_info"}, namespace)'
    return variable("namespace", "Namespace", query, ".*")


def variable(name, label, query, everything):
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": everything,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def versions():
    return {
        "name": "Starts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "blue",
        "expr": 'changes(process_start_time_seconds{job=~"$job"}[1m]) > 0',
        "titleFormat": "start",
        "textFormat": "{{pod}} {{instance}}",
    }


def place(rows):
    """Places rows below each other, and the panels of a row from left to right."""
    placed, top = [], 0
    for row in rows:
        placed.append(row_header(row, len(placed) + 1, top))
        top += 1
        left, tallest = 0, 0
        for panel in row.panels:
            if left + panel.width > 24:
                left, top, tallest = 0, top + tallest, 0
            placed.append(panel_map(panel, len(placed) + 1, left, top))
            left += panel.width
            tallest = max(tallest, panel.height)
        top += tallest
    return placed


def row_header(row, number, top):
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": False,
        "panels": [],
        "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
    }


def panel_map(panel, number, left, top):
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": defaults(panel), "overrides": []},
        "options": OPTIONS[panel.kind],
        "targets": [target(query, index, panel.kind) for index, query in enumerate(panel.queries)],
    }


def defaults(panel):
    steps = [{"color": "green", "value": None}]
    steps += [{"color": color, "value": value} for value, color in panel.lines]
    values = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps},
        "custom": custom(panel),
    }
    return values if panel.maximum is None else {**values, "max": panel.maximum}


def custom(panel):
    if panel.kind != "timeseries":
        return {}
    return {
        "drawStyle": "line",
        "fillOpacity": 20 if panel.stacked else 5,
        "lineWidth": 1,
        "showPoints": "never",
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if panel.lines else "off"},
    }


OPTIONS = {
    "timeseries": {
        "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "background",
        "graphMode": "area",
        "textMode": "value_and_name",
        "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
    },
    "bargauge": {
        "displayMode": "gradient",
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}


def target(query, index, kind):
    form = "table" if kind == "table" else "time_series"
    return {
        "refId": chr(ord("A") + index),
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend,
        "format": form,
        "instant": query.instant or kind == "table",
        "range": not (query.instant or kind == "table"),
    }
