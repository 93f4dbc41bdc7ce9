"""What can be reached: listeners on ports, and clients that report which of them answer.

`listen PORT…` serves TCP on each port, and UDP on 53.
`wait ADDRESS PORT…` returns once all of them answer.
`connect ADDRESS,… PORT…` prints JSON: a list of address, protocol and port of each that answered.
"""

import asyncio
import json
import sys

# A packet that a policy drops gets no answer. A second attempt follows, in case the machine was busy.
SECONDS = 1.5
WAIT_SECONDS = 20


class Echo(asyncio.DatagramProtocol):
    """Returns each datagram."""

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        self.transport.sendto(data, peer)


class Question(asyncio.DatagramProtocol):
    """Sends one datagram and waits for another."""

    def __init__(self):
        self.answered = asyncio.Event()

    def connection_made(self, transport):
        transport.sendto(b"?")

    def datagram_received(self, data, peer):
        self.answered.set()


async def listen(ports):
    loop = asyncio.get_running_loop()
    servers = [
        await asyncio.start_server(lambda _, writer: writer.close(), "0.0.0.0", port) for port in ports
    ]
    await loop.create_datagram_endpoint(Echo, local_addr=("0.0.0.0", 53))
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def tcp(address, port):
    _, writer = await asyncio.open_connection(address, port)
    writer.close()


async def udp(address, port):
    transport, question = await asyncio.get_running_loop().create_datagram_endpoint(
        Question, remote_addr=(address, port)
    )
    try:
        await question.answered.wait()
    finally:
        transport.close()


async def answers(ask, address, port):
    for _ in range(2):
        try:
            async with asyncio.timeout(SECONDS):
                await ask(address, port)
                return True
        except OSError:
            continue
    return False


async def connect(addresses, ports):
    asked = [(address, "tcp", tcp, port) for address in addresses for port in ports]
    asked += [(address, "udp", udp, 53) for address in addresses]
    found = await asyncio.gather(*(answers(ask, address, port) for address, _, ask, port in asked))
    print(
        json.dumps(
            [(a, protocol, port) for (a, protocol, _, port), good in zip(asked, found, strict=True) if good]
        )
    )


async def wait(address, ports):
    async with asyncio.timeout(WAIT_SECONDS):
        for port in ports:
            while not await answers(tcp, address, port):
                await asyncio.sleep(0.1)


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "listen":
        asyncio.run(listen([int(port) for port in rest]))
    elif command == "wait":
        asyncio.run(wait(rest[0], [int(port) for port in rest[1:]]))
    else:
        asyncio.run(connect(rest[0].split(","), [int(port) for port in rest[1:]]))
