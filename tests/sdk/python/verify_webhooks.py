"""Verifies requests that a webhook has received, with the library standardwebhooks.

    python verify_webhooks.py < REQUESTS

REQUESTS has one JSON object in a line: `secret`, `headers`, `body`, and whether the signature is `valid`.
"""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def is_valid(request: dict) -> bool:
    try:
        Webhook(request["secret"]).verify(request["body"], request["headers"])
    except WebhookVerificationError:
        return False
    return True


count = 0
for line in sys.stdin:
    request = json.loads(line)
    if is_valid(request) != request["valid"]:
        sys.exit(f"expected a signature that is {'valid' if request['valid'] else 'wrong'}: {line}")
    count += 1
print(f"{count} signatures as expected")
