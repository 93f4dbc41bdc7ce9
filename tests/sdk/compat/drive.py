"""Drives a running server through Python clients of YOURLS, Kutt and Bitly, unmodified, and checks every answer.

    python drive.py BASE_URL API_KEY OWN_KEY

BASE_URL is where the server listens; API_KEY a key that may do everything; OWN_KEY one that creates links, and reads
those and their visits. The server has no links yet.
"""

import sys
from typing import Any, Callable

import bitlyshortener
import pyourls3
import pyshorteners
import yourls
from bitlyshortener import config as bitly_addresses
from kutt import kutt

# Seconds that a call may take on a busy machine. Both clients of Bitly have less patience.
SOON = 30
held = 0


def expect(found: Any, expected: Any) -> None:
    global held
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")
    held += 1


def fails(kind: type[Exception], call: Callable[[], Any]) -> Exception:
    global held
    try:
        found = call()
    except kind as error:
        held += 1
        return error
    raise AssertionError(f"expected {kind.__name__}, found {found!r}")


def yourls_in_addresses(base: str, key: str, own: str) -> None:
    """PyPI `yourls` sends everything in the query of a GET."""
    client = yourls.YOURLSClient(f"{base}/yourls-api.php", signature=own)
    url = "https://example.com/yourls?a=b&c=d"
    made = client.shorten(url, keyword="by-yourls", title="A title")
    expect((made.shorturl, made.keyword), (f"{base}/by-yourls", "by-yourls"))
    expect((made.url, made.title, made.clicks), (url, "A title", 0))
    expect(client.expand("by-yourls"), url)
    expect(client.expand(f"{base}/by-yourls"), url)
    stats = client.url_stats("by-yourls")
    expect((stats.shorturl, stats.url, stats.title, stats.clicks), (made.shorturl, url, "A title", 0))
    expect(stats.date, made.date)
    links, totals = client.stats("last", 1)
    expect([link.shorturl for link in links], [made.shorturl])
    expect((totals.total_links, totals.total_clicks), (1, 0))
    expect(client.db_stats(), totals)
    fails(yourls.YOURLSHTTPError, lambda: client.shorten(url))
    fails(yourls.YOURLSHTTPError, lambda: client.shorten("https://example.com/x", keyword="by-yourls"))
    fails(yourls.YOURLSNoLoopError, lambda: client.shorten(made.shorturl))
    fails(yourls.YOURLSNoURLError, lambda: client.shorten(""))
    expect("not found" in str(fails(yourls.YOURLSHTTPError, lambda: client.expand("none"))), True)
    everything = yourls.YOURLSClient(f"{base}/yourls-api.php", signature=key)
    expect("part of an address" in str(fails(yourls.YOURLSHTTPError, everything.db_stats)), True)
    wrong = yourls.YOURLSClient(f"{base}/yourls-api.php", username="me", password="wrong")
    fails(yourls.YOURLSHTTPError, wrong.db_stats)


def yourls_in_forms(base: str, key: str) -> None:
    """PyPI `pyourls3` sends forms."""
    for client in (pyourls3.Yourls(addr=base, key=key), pyourls3.Yourls(addr=base, user="me", passwd=key)):
        before = client.stats()["total_links"]
        url = f"https://example.com/pyourls3/{before}"
        made = client.shorten(url, keyword=f"pyourls3-{before}", title="Über")
        expect((made["status"], made["code"], made["statusCode"]), ("success", "", "200"))
        expect(made["shorturl"], f"{base}/pyourls3-{before}")
        expect((made["url"]["keyword"], made["url"]["title"]), (f"pyourls3-{before}", "Über"))
        expect(client.expand(made["shorturl"]), url)
        expect(client.url_stats(made["shorturl"])["clicks"], "0")
        expect(client.stats()["total_links"], before + 1)
        fails(pyourls3.exceptions.Pyourls3URLAlreadyExistsError, lambda: client.shorten(url))
        taken = fails(pyourls3.exceptions.Pyourls3APIError, lambda: client.shorten(f"{url}/x", made["url"]["keyword"]))
        expect(taken.code, "error:keyword")
    fails(pyourls3.exceptions.Pyourls3APIError, lambda: pyourls3.Yourls(addr=base, key="wrong"))


def kutt_links(base: str, key: str) -> None:
    """PyPI `kutt` sends forms, even with a GET."""
    at = {"host_url": f"{base}/api/v2/links"}
    url = "https://example.com/kutt"
    made = kutt.submit(key, url, description="For a test", expire_in="2 days", customurl="by-kutt", **at)
    link = made["data"]
    expect((made["code"], link["target"], link["address"]), (201, url, "by-kutt"))
    expect((link["link"], link["description"]), (f"{base}/by-kutt", "For a test"))
    expect((link["password"], link["banned"], link["visit_count"], link["domain"]), (False, False, 0, None))
    expect((len(link["id"]), link["expire_in"] is not None), (36, True))
    again = kutt.submit(key, url, reuse=True, **at)
    expect((again["code"], again["data"]["id"]), (200, link["id"]))
    taken = kutt.submit(key, url, customurl="by-kutt", **at)
    expect((taken["code"], list(taken["data"])), (400, ["error"]))
    short = kutt.submit(key, url, expire_in="5s", **at)
    expect((short["code"], short["data"]["error"].startswith("expire_in: ")), (400, True))
    edited = kutt.update(key, link["id"], f"{url}/2", "by-kutt", description="Edited", **at)
    expect((edited["code"], edited["data"]["target"]), (200, f"{url}/2"))
    expect((edited["data"]["description"], edited["data"]["expire_in"]), ("Edited", link["expire_in"]))
    renamed = kutt.update(key, link["id"], f"{url}/2", "another", **at)
    expect((renamed["code"], renamed["data"]["error"].startswith("address: ")), (400, True))
    listed = kutt.links(key, **at)["data"]
    expect((listed["limit"], listed["skip"], listed["total"]), (10, 0, len(listed["data"])))
    expect(listed["data"][0], edited["data"])
    stats = kutt.stats(key, link["id"], **at)
    expect((stats["code"], stats["data"]["id"], stats["data"]["address"]), (200, link["id"], "by-kutt"))
    for period, points in (("lastDay", 24), ("lastWeek", 7), ("lastMonth", 30), ("lastYear", 12)):
        expect((len(stats["data"][period]["views"]), stats["data"][period]["total"]), (points, 0))
        expect(set(stats["data"][period]["stats"]), {"browser", "os", "country", "referrer"})
    expect(kutt.links("wrong", **at), {"code": 401, "data": {"error": "Unauthorized."}})
    deleted = kutt.delete(key, link["id"], **at)
    expect(deleted, {"code": 200, "data": {"message": "Link has been deleted successfully."}})
    expect(kutt.delete(key, link["id"], **at)["code"], 404)


def bitly_links(base: str, own: str) -> None:
    """PyPI `pyshorteners` has a setting for the address; `bitlyshortener` has names in a module."""
    client = pyshorteners.Shortener(api_key=own, api_url=f"{base}/v4", timeout=SOON).bitly
    url = "https://example.com/bitly?a=b&c=d"
    made = client.short(url)
    expect((made.startswith(f"{base}/"), client.short(url)), (True, made))
    expect((client.expand(made), client.total_clicks(made)), (url, 0))
    refused = fails(pyshorteners.exceptions.ShorteningErrorException, lambda: client.short(made))
    expect("ALREADY_A_BITLY_LINK" in str(refused), True)
    fails(pyshorteners.exceptions.ExpandingErrorException, lambda: client.expand(f"{base}/nonenone"))
    fails(pyshorteners.exceptions.BadAPIResponseException, lambda: client.total_clicks(f"{base}/nonenone"))

    for name in ("API_URL_SHORTEN", "API_URL_BITLINKS"):
        address = getattr(bitly_addresses, name)
        setattr(bitly_addresses, name, address.replace("https://api-ssl.bitly.com", base))
    bitly_addresses.REQUEST_TIMEOUT = SOON
    many = bitlyshortener.Shortener(tokens=[own])
    urls = [f"https://example.com/bitlyshortener/{number}" for number in range(10)]
    # It takes all short URLs for HTTPS.
    found = many.shorten_urls([url, *urls])
    expect((found[0], len(set(found))), (made.replace("http://", "https://"), 11))
    expect(bitlyshortener.Shortener(tokens=[own]).shorten_urls_to_dict(urls), dict(zip(urls, found[1:])))
    fails(bitlyshortener.exc.RequestError, lambda: many.shorten_urls(["nothing"]))
    wrong = bitlyshortener.Shortener(tokens=["wrong"])
    fails(bitlyshortener.exc.RequestError, lambda: wrong.shorten_urls([url]))


def main() -> None:
    base, key, own = sys.argv[1:]
    yourls_in_addresses(base, key, own)
    yourls_in_forms(base, key)
    kutt_links(base, key)
    bitly_links(base, own)
    print(f"{held} checks hold")


main()
