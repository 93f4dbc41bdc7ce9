"""Streams creates through grpcio as fast as it takes them, beside streams that read no answers.

usage: drive.py ADDRESS KEY REQUESTS SLOW

Ends with a line of JSON: how many requests were sent and how many were answered with a link or a
refusal, and the statuses with which the streams ended.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading

import grpc

address, key, requests, slow = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
proto = pathlib.Path(__file__).resolve().parents[3] / "proto"
generated = tempfile.TemporaryDirectory()
file = "shortmint/links/v1/links.proto"
subprocess.run(["protoc", f"--proto_path={proto}", f"--python_out={generated.name}", file], check=True)
sys.path.insert(0, generated.name)
from shortmint.links.v1 import links_pb2  # noqa: E402  (generated a line above)

channel = grpc.insecure_channel(address)
create_links = channel.stream_stream(
    "/shortmint.links.v1.Links/CreateLinks",
    request_serializer=links_pb2.CreateLinkRequest.SerializeToString,
    response_deserializer=links_pb2.CreateLinkResult.FromString,
)


def begin(name):
    numbered = (
        links_pb2.CreateLinkRequest(long_url=f"https://example.com/{name}/{number}") for number in range(requests)
    )
    return create_links(numbered, metadata=[("x-api-key", key)])


def read(call, name, ended):
    links = refused = 0
    try:
        for number, result in enumerate(call):
            if result.HasField("link"):
                assert result.link.long_url == f"https://example.com/{name}/{number}", result
                links += 1
            else:
                refused += 1
        status = "OK"
    except grpc.RpcError as error:
        status = f"{error.code().name}: {error.details()}"
    ended.append((links, refused, status))


ended = []
unread = [(begin(f"slow{number}"), f"slow{number}") for number in range(slow)]
read(begin("fast"), "fast", ended)
readers = [threading.Thread(target=read, args=(*call, ended)) for call in unread]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
print(json.dumps({
    "sent": requests * (slow + 1),
    "links": sum(links for links, _, _ in ended),
    "refused": sum(refused for _, refused, _ in ended),
    "statuses": sorted({status for _, _, status in ended}),
}))
