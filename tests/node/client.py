"""The clients of a run, as processes of their own: `client.py create|follow|verify OPTIONS`.

Each speaks HTTP/1.1 over its own pool of connections, runs until SIGTERM or its end, and then prints one
line of JSON with its counts. An answer that is neither 2xx nor 3xx, a reset, and no answer in time are
failures. `create` appends each acknowledged code and its URL to the file of links, which the others read.
"""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import signal
import time

TIMEOUT_SECONDS = 10
EXAMPLES = 20


class Pool:
    """Idle connections. A request takes one, or opens another, and returns it after the answer."""

    def __init__(self, address, host):
        self.address, self.host = address.split(":"), host
        self.idle = collections.deque()

    async def request(self, method, path, headers="", body=b""):
        """Returns status, headers and body. Nothing is sent twice."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n{headers}"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        async with asyncio.timeout(TIMEOUT_SECONDS):
            streams = self.idle.pop() if self.idle else await asyncio.open_connection(*self.address)
            reader, writer = streams
            try:
                writer.write(f"{head}\r\n".encode() + body)
                answer = await read_answer(reader)
            except BaseException:
                writer.close()
                raise
        if answer[1].get("connection") == "close":
            writer.close()
        else:
            self.idle.append(streams)
        return answer


async def read_answer(reader):
    """Reads one answer to its last byte."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(head[0].split(" ")[1]), headers, body


class Counts:
    """What happened, with the first examples of each failure and the second of the run in which it did."""

    def __init__(self):
        self.start = time.monotonic()
        self.attempted = self.succeeded = 0
        self.failures, self.examples, self.times = collections.Counter(), [], []
        self.failed_at = []

    def failed(self, reason, detail=""):
        self.failures[reason] += 1
        self.failed_at.append(time.time())
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{time.time():.3f} {reason} {detail}"[:300])

    def summary(self, **more):
        elapsed = time.monotonic() - self.start
        times = sorted(self.times) or [0.0]
        quantile = lambda share: round(1000 * times[min(len(times) - 1, int(share * len(times)))], 1)
        return {
            "attempted": self.attempted,
            "succeeded": self.succeeded,
            "failed": sum(self.failures.values()),
            "failures": dict(self.failures),
            "examples": self.examples,
            "seconds": round(elapsed, 1),
            "failed_at": self.failed_at,
            "rate": round(self.attempted / elapsed, 1),
            "milliseconds": {"p50": quantile(0.5), "p99": quantile(0.99), "max": quantile(1)},
            **more,
        }


def reason_of(error):
    """A reset and a timeout read differently in each layer of Python."""
    if isinstance(error, TimeoutError):
        return "timeout"
    return (
        "reset" if isinstance(error, (ConnectionError, asyncio.IncompleteReadError)) else type(error).__name__
    )


async def create(options, stop):
    """Sends creates at a constant rate, whatever happened to those before."""
    pool, counts, codes = Pool(options.address, options.host), Counts(), {}
    headers = f"X-Api-Key: {options.key}\r\nContent-Type: application/json\r\n"
    duplicates, tasks = [], set()
    links = options.links.open("a", buffering=1 << 16)

    async def one(number):
        url = f"https://example.com/{options.label}/{number}"
        began = time.monotonic()
        try:
            body = json.dumps({"longUrl": url}).encode()
            status, _, answer = await pool.request("POST", "/rest/v3/short-urls", headers, body)
        except Exception as error:
            return counts.failed(reason_of(error), repr(error))
        if not 200 <= status < 300:
            return counts.failed(f"status {status}", answer[:200])
        counts.times.append(time.monotonic() - began)
        code = json.loads(answer)["shortCode"]
        counts.succeeded += 1
        if code in codes:
            duplicates.append([code, codes[code], url])
        codes[code] = url
        links.write(f"{code} {url}\n")

    while not stop.is_set():
        await asyncio.sleep(max(0.0, counts.start + counts.attempted / options.rate - time.monotonic()))
        counts.attempted += 1
        task = asyncio.create_task(one(counts.attempted))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if counts.attempted % 100 == 0:
            links.flush()
    rate = counts.attempted / (time.monotonic() - counts.start)
    await asyncio.gather(*tasks)
    links.close()
    return {**counts.summary(acknowledged=len(codes), duplicates=duplicates), "rate": round(rate, 1)}


class Links:
    """The links that were acknowledged so far."""

    def __init__(self, path):
        self.file, self.rest, self.known = path.open(), "", []

    def read(self):
        lines = (self.rest + self.file.read()).split("\n")
        self.rest = lines.pop()
        self.known += [tuple(line.split(" ")) for line in lines]


async def check(pool, counts, code, url):
    """Follows one link: the answer has to be a redirect to its URL."""
    counts.attempted += 1
    began = time.monotonic()
    try:
        status, headers, _ = await pool.request("GET", f"/{code}")
    except Exception as error:
        return counts.failed(reason_of(error), f"/{code} {error!r}")
    if not 300 <= status < 400:
        return counts.failed(f"status {status}", f"/{code} for {url}")
    if headers.get("location") != url:
        return counts.failed("wrong location", f"/{code} leads to {headers.get('location')} and not to {url}")
    counts.times.append(time.monotonic() - began)
    counts.succeeded += 1


async def follow(options, stop):
    """Follows random known links at a constant rate."""
    pool, counts, links, tasks = Pool(options.address, options.host), Counts(), Links(options.links), set()
    while not stop.is_set():
        await asyncio.sleep(max(0.0, counts.start + counts.attempted / options.rate - time.monotonic()))
        if counts.attempted % 50 == 0:
            links.read()
        task = asyncio.create_task(check(pool, counts, *random.choice(links.known)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    return counts.summary()


async def verify(options, stop):
    """Follows every link once."""
    pool, counts, links = Pool(options.address, options.host), Counts(), Links(options.links)
    links.read()
    waiting = iter(links.known)

    async def worker():
        for code, url in waiting:
            if stop.is_set():
                return
            await check(pool, counts, code, url)

    await asyncio.gather(*(worker() for _ in range(16)))
    return counts.summary(links=len(links.known))


async def main():
    commands = {"create": create, "follow": follow, "verify": verify}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=commands)
    parser.add_argument("--address", required=True, help="ADDRESS:PORT of the proxy")
    parser.add_argument("--host", required=True, help="the domain of the links")
    parser.add_argument("--links", required=True, type=pathlib.Path, help="file of codes and URLs")
    parser.add_argument("--rate", type=float, default=1, help="requests per second")
    parser.add_argument("--key", default="", help="API key of the creates")
    parser.add_argument("--label", default="n", help="part of the created URLs")
    options = parser.parse_args()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(json.dumps(await commands[options.command](options, stop)))


if __name__ == "__main__":
    asyncio.run(main())
