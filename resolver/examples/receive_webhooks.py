"""Receives webhooks on http://HOST:PORT, and prints the events whose signature is right.

usage: receive_webhooks.py HOST:PORT      with the webhook's secret in WEBHOOK_SECRET
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

MAX_BODY = 256 * 1024
webhook = Webhook(os.environ["WEBHOOK_SECRET"])
# An event can arrive more than once, with the same id. A real receiver keeps ids in its database.
seen = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers["content-length"]), MAX_BODY))
        try:
            event = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            return self.answer(401)
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            print(event["type"], json.dumps(event["data"]), flush=True)
        # Any other status than 2xx asks for another attempt, and 410 for no more events at all.
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    host, port = sys.argv[1].split(":")
    HTTPServer((host, int(port)), Receiver).serve_forever()
