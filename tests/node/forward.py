"""`forward.py PORT ADDRESS TARGET`: connects a port of the loopback with a port of a pod."""

import asyncio
import sys


async def copy(reader, writer):
    """Copies one direction to its end."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(port, address, target):
    async def connect(reader, writer):
        other_reader, other_writer = await asyncio.open_connection(address, int(target))
        await asyncio.gather(copy(reader, other_writer), copy(other_reader, writer))

    server = await asyncio.start_server(connect, "127.0.0.1", int(port))
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
