"""ClickHouse outside of the cluster: one server, for the rows of visits."""

import secrets

from network import OUTSIDE
from programs import Failed, Server, call, path_of

USER = DATABASE = "shortmint"
PORT = 8123


class Clickhouse:
    """One server of Debian's package, on an address of its own."""

    def __init__(self, network, scratch):
        self.password = secrets.token_hex(16)
        self.host = network.add("clickhouse", OUTSIDE)
        self.names = [(self.host.address, "clickhouse.shortmint.svc")]
        folder = scratch / "clickhouse"
        folder.mkdir()
        (folder / "users.xml").write_text(self.users())
        (folder / "config.xml").write_text(self.settings(folder))
        command = ["ip", "netns", "exec", self.host.name, path_of("clickhouse-server")]
        command.append(f"--config-file={folder / 'config.xml'}")
        self.server = Server("clickhouse", command, scratch / "logs" / "clickhouse.log")

    def url(self):
        return f"clickhouse+http://{USER}:{self.password}@clickhouse:{PORT}/{DATABASE}"

    def is_up(self):
        try:
            return self.query("SELECT 1") == "1"
        except Failed:
            return False

    def query(self, statement):
        """Runs a statement and returns its answer as text."""
        target = f"http://{USER}:{self.password}@{self.host.address}:{PORT}/"
        return call("curl", "--silent", "--fail", "--max-time", "10", "--data", statement, target)

    def users(self):
        return (
            "<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>"
            f"<users><{USER}><password>{self.password}</password><networks><ip>::/0</ip></networks>"
            f"<profile>default</profile><quota>default</quota></{USER}></users>"
            "<quotas><default></default></quotas></yandex>"
        )

    def settings(self, folder):
        return (
            "<yandex><logger><level>warning</level><console>1</console></logger>"
            f"<listen_host>{self.host.address}</listen_host><http_port>{PORT}</http_port>"
            f"<tcp_port>9000</tcp_port><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>"
            f"<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>"
            "<default_database>default</default_database><mark_cache_size>16777216</mark_cache_size>"
            "<uncompressed_cache_size>0</uncompressed_cache_size></yandex>"
        )
