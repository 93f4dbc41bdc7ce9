"""Receives traces by OTLP over gRPC, with the protocol's own definitions, and appends each span to a file.

Usage: receiver.py HOST:PORT FILE
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service


class Receiver(service.TraceServiceServicer):
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def Export(self, request, context):
        for of_process in request.resource_spans:
            process = attributes(of_process.resource.attributes)
            for spans in of_process.scope_spans:
                for span in spans.spans:
                    self.write(process, span)
        return messages.ExportTraceServiceResponse()

    def write(self, process, span):
        line = {
            "service": process.get("service.name"),
            "name": span.name,
            "trace": span.trace_id.hex(),
            "span": span.span_id.hex(),
            "parent": span.parent_span_id.hex(),
            "kind": span.kind,
            "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
            "attributes": attributes(span.attributes),
        }
        self.file.write(json.dumps(line) + "\n")


def attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


def main():
    address, path = sys.argv[1:]
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    service.add_TraceServiceServicer_to_server(Receiver(path), server)
    if server.add_insecure_port(address) == 0:
        sys.exit(f"{address}: cannot listen")
    server.start()
    server.wait_for_termination()


main()
