"""The Ingress controller: Envoy, with routes from the Ingress object and endpoints from a file per Service.

Envoy neither repeats requests nor probes pods, so that each failure of a pod reaches the client and is
counted. It logs every answer from 400 up, with Envoy's own reason.
"""

import json
import time

import yaml

from programs import Server, path_of

ADDRESS, PORT = "10.77.64.10", 80
HOST = "ingress"
TYPE = "type.googleapis.com/envoy"
# As Envoy's own default: a request that takes longer is a failure.
TIMEOUT = "15s"


class Ingress:
    """Envoy in a namespace of its own."""

    def __init__(self, network, scratch):
        self.network, self.scratch = network, scratch
        self.folder = scratch / "endpoints"
        self.folder.mkdir()
        self.host = network.add(HOST, "ingress-nginx", {"app.kubernetes.io/name": "ingress-nginx"}, ADDRESS)
        self.log = scratch / "logs" / "envoy-failures.log"
        self.clusters, self.server = {}, None

    def start(self, found, services):
        """Starts Envoy with the paths of an Ingress object."""
        ports = {
            (service["metadata"]["name"], entry["name"]): entry["port"]
            for service in services
            for entry in service["spec"]["ports"]
        }
        routes = []
        for rule in found["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                number = backend["port"].get("number") or ports[backend["name"], backend["port"]["name"]]
                cluster = f"{backend['name']}-{number}"
                self.clusters[backend["name"], number] = cluster
                routes.append({"match": match(path), "route": {"cluster": cluster, "timeout": TIMEOUT}})
        self.update({})
        config = self.scratch / "envoy.yaml"
        config.write_text(yaml.safe_dump(self.configuration(routes)))
        options = ["--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"]
        command = ["ip", "netns", "exec", HOST, path_of("envoy"), "--config-path", config, *options]
        self.server = Server("envoy", command, self.scratch / "logs" / "envoy.log")

    def update(self, endpoints):
        """Writes the endpoints of each cluster. Envoy sees the rename."""
        for key, cluster in self.clusters.items():
            socket = lambda address, port: {"socket_address": {"address": address, "port_value": port}}
            pods = [{"endpoint": {"address": socket(*found)}} for found in endpoints.get(key, [])]
            assignment = {
                "@type": f"{TYPE}.config.endpoint.v3.ClusterLoadAssignment",
                "cluster_name": cluster,
                "endpoints": [{"lb_endpoints": pods}],
            }
            new = self.folder / ".new"
            new.write_text(json.dumps({"version_info": str(time.time_ns()), "resources": [assignment]}))
            new.rename(self.folder / f"{cluster}.json")

    def configuration(self, routes):
        manager = {
            "@type": f"{TYPE}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "ingress",
            "use_remote_address": True,
            "access_log": [self.access_log()],
            "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
            "http_filters": [
                {
                    "name": "router",
                    "typed_config": {"@type": f"{TYPE}.extensions.filters.http.router.v3.Router"},
                }
            ],
        }
        listener = {
            "name": "ingress",
            "address": {"socket_address": {"address": ADDRESS, "port_value": PORT}},
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
        }
        return {
            "node": {"id": "ingress", "cluster": "ingress"},
            "static_resources": {
                "listeners": [listener],
                "clusters": [self.cluster(n) for n in self.clusters.values()],
            },
        }

    def access_log(self):
        failed = {"comparison": {"op": "GE", "value": {"default_value": 400, "runtime_key": "failures"}}}
        fields = (
            "START_TIME",
            "REQ(:METHOD)",
            "REQ(:PATH)",
            "RESPONSE_CODE",
            "RESPONSE_CODE_DETAILS",
            "UPSTREAM_HOST",
        )
        line = " ".join(f"%{field}%" for field in fields) + "\n"
        return {
            "name": "failures",
            "filter": {"status_code_filter": failed},
            "typed_config": {
                "@type": f"{TYPE}.extensions.access_loggers.file.v3.FileAccessLog",
                "path": str(self.log),
                "log_format": {"text_format_source": {"inline_string": line}},
            },
        }

    def cluster(self, name):
        many = 100_000
        limits = {key: many for key in ("max_connections", "max_pending_requests", "max_requests")}
        source = {"path": str(self.folder / f"{name}.json"), "watched_directory": {"path": str(self.folder)}}
        return {
            "name": name,
            "type": "EDS",
            "connect_timeout": "1s",
            "lb_policy": "ROUND_ROBIN",
            "circuit_breakers": {"thresholds": [limits]},
            # Otherwise Envoy asks pods that it knows to be gone, once half of them are.
            "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
            "eds_cluster_config": {
                "service_name": name,
                "eds_config": {"resource_api_version": "V3", "path_config_source": source},
            },
        }


def match(path):
    """Returns Envoy's form of a path of an Ingress."""
    if path["pathType"] == "Exact":
        return {"path": path["path"]}
    return {"prefix": "/"} if path["path"] == "/" else {"path_separated_prefix": path["path"].rstrip("/")}
