"""Creates a link for each line of standard input, over gRPC, and prints the short URLs in their order.

usage: create_links.py ADDRESS RUN < urls.txt      with the API key in SHORTMINT_API_KEY

RUN is a name for this list, such as spring-sale. The same list under the same name creates no other links.
"""

import os
import sys
import time

import grpc
from shortmint.links.v1 import links_pb2

# Statuses after which the requests that were not answered are sent again.
LATER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


def create_all(create_links, requests, tries=10):
    """Yields a result for each request. A stream that ends early is begun again with the rest."""
    answered = 0
    while answered < len(requests):
        metadata = [("x-api-key", os.environ["SHORTMINT_API_KEY"])]
        try:
            for result in create_links(iter(requests[answered:]), metadata=metadata):
                answered += 1
                yield result
        except grpc.RpcError as error:
            tries -= 1
            if error.code() not in LATER or tries == 0:
                sys.exit(f"{error.code().name}: {error.details()}")
            time.sleep(1)


def main(address, run):
    channel = grpc.insecure_channel(address)
    create_links = channel.stream_stream(
        "/shortmint.links.v1.Links/CreateLinks",
        request_serializer=links_pb2.CreateLinkRequest.SerializeToString,
        response_deserializer=links_pb2.CreateLinkResult.FromString,
    )
    requests = [
        # The key makes a request safe to repeat: it finds its own link again.
        links_pb2.CreateLinkRequest(long_url=line.strip(), idempotency_key=f"{run}-{number}")
        for number, line in enumerate(sys.stdin)
    ]
    refused = 0
    for request, result in zip(requests, create_all(create_links, requests)):
        if result.HasField("link"):
            print(result.link.short_url)
        else:
            refused += 1
            print(f"{request.long_url}: {result.refusal.message}", file=sys.stderr)
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
