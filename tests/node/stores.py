"""The stores outside of the cluster: three members of etcd, and Postgres, with TLS as the base demands."""

import os
import pwd
import secrets
import signal
import time

from network import OUTSIDE
from programs import Failed, Server, call, postgres_folder

USER = DATABASE = "shortmint"


class Etcd:
    """Three members. Clients need a certificate of the authority."""

    def __init__(self, network, scratch, authority):
        names = [f"etcd-{number}" for number in range(3)]
        authority.issue("etcd", *(f"{name}.etcd" for name in names), "localhost")
        hosts = self.hosts = [network.add(name, OUTSIDE) for name in names]
        self.names = [(host.address, f"{host.name}.etcd.shortmint.svc") for host in hosts]
        peers = ",".join(f"{host.name}=http://{host.address}:2380" for host in hosts)
        self.servers = []
        for host in hosts:
            options = {
                "name": host.name,
                "data-dir": scratch / host.name,
                "listen-client-urls": f"https://{host.address}:2379",
                "advertise-client-urls": f"https://{host.name}.etcd:2379",
                "listen-peer-urls": f"http://{host.address}:2380",
                "initial-advertise-peer-urls": f"http://{host.address}:2380",
                "initial-cluster": peers,
                "client-cert-auth": "true",
                "trusted-ca-file": authority.certificate("authority"),
                "cert-file": authority.certificate("etcd"),
                "key-file": authority.key("etcd"),
                "auto-compaction-retention": "1h",
            }
            flags = [f"--{name}={value}" for name, value in options.items()]
            log = scratch / "logs" / f"{host.name}.log"
            self.servers.append(Server(host.name, ["ip", "netns", "exec", host.name, "etcd", *flags], log))


class Postgres:
    """One server that admits TLS with a password only. Its fsync is off: no scenario loses it."""

    def __init__(self, network, scratch, authority):
        self.folder, self.password = scratch / "postgres", secrets.token_hex(16)
        self.programs = postgres_folder()
        self.host = network.add("postgres", OUTSIDE)
        self.names = [(self.host.address, "postgres.shortmint.svc")]
        authority.issue("postgres", "postgres")
        self.log = scratch / "logs" / "postgres.log"
        self.initialize(authority)
        settings = {
            "listen_addresses": self.host.address,
            "unix_socket_directories": "",
            "fsync": "off",
            "ssl": "on",
            "max_connections": "300",
            "ssl_cert_file": self.folder / "server.crt",
            "ssl_key_file": self.folder / "server.key",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = [*self.as_owner(), self.programs / "postgres", "-D", self.folder / "data", *flags]
        command = ["ip", "netns", "exec", self.host.name, *server]
        self.server = Server("postgres", command, self.log, stop_signal=signal.SIGINT)

    def as_owner(self):
        """Postgres refuses to run as root."""
        owner = pwd.getpwnam("postgres")
        return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]

    def initialize(self, authority):
        owner = pwd.getpwnam("postgres")
        self.folder.mkdir()
        files = {
            "password": self.password,
            "server.crt": authority.certificate("postgres").read_text(),
            "server.key": authority.key("postgres").read_text(),
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o600)
            os.chown(self.folder / name, owner.pw_uid, owner.pw_gid)
        os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        call(
            *self.as_owner(),
            self.programs / "initdb",
            "-D",
            self.folder / "data",
            "-U",
            USER,
            "--no-sync",
            "--auth=scram-sha-256",
            f"--pwfile={self.folder / 'password'}",
            cwd=self.folder,
        )
        with (self.folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("hostssl all all 0.0.0.0/0 scram-sha-256\n")

    def create_database(self):
        """Creates the database once the server answers."""
        for _ in range(300):
            self.server.check()
            try:
                self.sql("postgres", f"CREATE DATABASE {DATABASE}")
                return
            except Failed:
                time.sleep(0.1)
        raise Failed(f"postgres does not answer: see {self.log}")

    def sql(self, database, statement):
        """Runs a statement on the node and returns what psql prints."""
        target = f"host={self.host.address} user={USER} dbname={database} sslmode=require"
        environment = {**os.environ, "PGPASSWORD": self.password}
        psql = self.programs / "psql"
        return call(
            psql, "--no-psqlrc", "--tuples-only", "--no-align", "-c", statement, target, env=environment
        )

    def secret(self):
        """Returns the keys of the Secret that lead to this database."""
        options = (
            "sslmode=verify-full&sslrootcert=/etc/authorities/postgres.crt&passfile=/etc/database/pgpass"
        )
        return {
            "database-url": f"postgres://{USER}@postgres/{DATABASE}?{options}",
            "pgpass": f"*:*:*:{USER}:{self.password}",
        }

    def schema_version(self):
        return int(self.sql(DATABASE, "SELECT coalesce(max(version), 0) FROM refinery_schema_history"))
