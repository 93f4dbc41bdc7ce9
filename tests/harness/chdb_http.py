"""Serves the ClickHouse engine of chdb-core over HTTP, as far as tests of a client need it.

Arguments: address, port, data folder, user, password. One statement runs at a time.
"""
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import session

ADDRESS, PORT, FOLDER, USER, PASSWORD = sys.argv[1:]
PARAMETERS = {"query", "database", "default_format", "query_id", "wait_end_of_query"}
engine = session.Session(os.path.join(FOLDER, "data"))
lock = threading.Lock()


def run(parameters, body):
    text, form = body, parameters.get("default_format", "TSV")
    with lock, tempfile.NamedTemporaryFile(dir=FOLDER) as block:
        for name, value in parameters.items():
            if name not in PARAMETERS:
                engine.query(f"SET {name} = '{value}'")
        engine.query(f"USE {parameters.get('database', 'default')}")
        if "query" in parameters:
            # Only blocks from INFILE are deduplicated, those from a query's own data are not.
            insert, native = parameters["query"].split(" FORMAT ")
            block.write(body)
            block.flush()
            text = f"{insert} FROM INFILE '{block.name}' COMPRESSION 'none' FORMAT {native}".encode()
        return engine.query(text.decode(), form).bytes() or b""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are sent apart: the body would wait 40 ms for the client's acknowledgement.
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.body()
        account = (self.headers.get("X-ClickHouse-User"), self.headers.get("X-ClickHouse-Key"))
        try:
            if account != (USER, PASSWORD):
                raise PermissionError("Code: 516. DB::Exception: Authentication failed")
            status, answer = 200, run(dict(parse_qsl(urlsplit(self.path).query)), body)
        except Exception as error:
            status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def log_message(self, *_):
        pass


ThreadingHTTPServer((ADDRESS, int(PORT)), Handler).serve_forever()
