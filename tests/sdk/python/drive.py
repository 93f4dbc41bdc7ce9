"""Drives a running server through PyShlink, unmodified, and checks every answer.

    python drive.py BASE_URL API_KEY

BASE_URL is where the server listens, such as http://127.0.0.1:8080; API_KEY a key that may do everything. PyShlink only
reads, so links are made, edited and deleted by plain requests. They have names that no other run has, and are deleted at
the end.
"""

import re
import secrets
import sys
import time
from datetime import datetime, timedelta, timezone
from typing import Any, Callable
from urllib.parse import quote

import requests
from shlink import Shlink

Json = dict[str, Any]

PROBLEMS = "https://shlink.io/api/error/"
LINK_TYPES = {
    "shortUrl": str,
    "shortCode": str,
    "longUrl": str,
    "dateCreated": str,
    "tags": list,
    "meta": dict,
    "domain": (str, type(None)),
    "title": (str, type(None)),
    "crawlable": bool,
    "forwardQuery": bool,
    "visitsSummary": dict,
    "hasRedirectRules": bool,
}
VISIT_TYPES = {
    "referer": str,
    "date": str,
    "userAgent": str,
    "visitLocation": (dict, type(None)),
    "potentialBot": bool,
    "visitedUrl": (str, type(None)),
    "redirectUrl": (str, type(None)),
}
PAGE_KEYS = ("currentPage", "pagesCount", "itemsPerPage", "itemsInCurrentPage", "totalItems")
ATOM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

REQUEST_TAKES_AT_MOST = 30
# How long a visitor or a list may be shown the state before a change, in seconds.
CHANGE_IS_SEEN_WITHIN = 1.0
VISITS_ARE_STORED_WITHIN = 3.0
POLL_EVERY = 0.05


class Differs(Exception):
    """An answer is not what was expected; the text says both."""


def expect(holds: bool, expected: str, got: Any) -> None:
    if not holds:
        raise Differs(f"expected {expected}, got {got!r}")


def has_types(value: Any, types: dict[str, Any], what: str) -> None:
    expect(isinstance(value, dict) and set(value) >= set(types), f"{what} with the keys {', '.join(types)}", value)
    for key, kind in types.items():
        expect(isinstance(value[key], kind), f"{key} of {what} to be of type {kind}", value[key])


def is_count(value: Any, what: str) -> None:
    expect(isinstance(value, int) and not isinstance(value, bool) and value >= 0, f"{what} to be a count", value)


def is_atom(value: Any, what: str) -> None:
    expect(bool(ATOM.fullmatch(value)), f"{what} such as 2019-01-01T00:00:10+00:00", value)


def is_link(link: Any, **wanted: Any) -> None:
    has_types(link, LINK_TYPES, "a short URL")
    is_atom(link["dateCreated"], "dateCreated")
    expect(link["shortUrl"].endswith(f"/{link['shortCode']}"), "shortUrl to end with the code", link["shortUrl"])
    expect(all(isinstance(tag, str) for tag in link["tags"]), "tags to be texts", link["tags"])
    expect(set(link["meta"]) == {"validSince", "validUntil", "maxVisits"}, "the three limits in meta", link["meta"])
    summary = link["visitsSummary"]
    expect(set(summary) == {"total", "nonBots", "bots"}, "the three numbers of visits", summary)
    for key, count in summary.items():
        is_count(count, f"visitsSummary.{key}")
    expect(summary["total"] == summary["nonBots"] + summary["bots"], "numbers of visits that add up", summary)
    for key, value in wanted.items():
        expect(link[key] == value, f"{key} of {link['shortCode']} to be {value!r}", link[key])


def is_page(answer: Any, name: str) -> list[Json]:
    expect(isinstance(answer, dict) and set(answer) == {name}, f"an answer with {name} only", answer)
    expect(set(answer[name]) == {"data", "pagination"}, "data and pagination", answer[name])
    data, pagination = answer[name]["data"], answer[name]["pagination"]
    expect(set(pagination) == set(PAGE_KEYS), f"pagination with {', '.join(PAGE_KEYS)}", pagination)
    for key in PAGE_KEYS:
        is_count(pagination[key], key)
    expect(pagination["itemsInCurrentPage"] == len(data), f"itemsInCurrentPage to be {len(data)}", pagination)
    pages = max(1, -(-pagination["totalItems"] // pagination["itemsPerPage"]))
    expect(pagination["pagesCount"] == pages, f"pagesCount to be {pages}", pagination)
    expect(pagination["currentPage"] == 1, "the first page", pagination)
    return data


def is_visits(answer: Any) -> list[Json]:
    data = is_page(answer, "visits")
    for visit in data:
        has_types(visit, VISIT_TYPES, "a visit")
        is_atom(visit["date"], "date")
    dates = [datetime.fromisoformat(visit["date"]) for visit in data]
    expect(dates == sorted(dates, reverse=True), "the newest visits first", dates)
    return data


def is_problem(answer: Any, status: int, kind: str, title: str, detail: str, **extras: Any) -> None:
    wanted = {"type": PROBLEMS + kind, "title": title, "status": status, "detail": detail, **extras}
    expect(answer == wanted, f"the problem {wanted}", answer)


def is_not_found(answer: Any, code: str) -> None:
    detail = f'No URL found with short code "{code}"'
    is_problem(answer, 404, "short-url-not-found", "Short URL not found", detail, shortCode=code)


def eventually(check: Callable[[], Any], within: float = CHANGE_IS_SEEN_WITHIN) -> Any:
    """Asks again until the check holds, and fails as the last check did once the time is over."""
    deadline = time.monotonic() + within
    while True:
        try:
            return check()
        except Differs:
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_EVERY)


def in_hours(hours: int) -> datetime:
    return datetime.now(timezone.utc) + timedelta(hours=hours)


class Run:
    """One run: the server, PyShlink's client, the links that were made, and how many steps held."""

    def __init__(self, base: str, api_key: str) -> None:
        self.base, self.api_key = base.rstrip("/"), api_key
        self.shlink = Shlink(api_key=api_key, url=self.base)
        self.id = f"p{secrets.token_hex(5)}"
        self.long_url = f"https://example.com/{self.id}"
        self.made: list[str] = []
        self.held, self.current = 0, "start"

    def step(self, name: str, work: Callable[[], Any]) -> None:
        self.current = name
        work()
        self.held += 1
        print(f"ok {name}", flush=True)

    def call(self, method: str, path: str, status: int, body: Json | None = None) -> requests.Response:
        answer = requests.request(
            method,
            f"{self.base}/rest/v3{path}",
            headers={"X-Api-Key": self.api_key},
            json=body,
            timeout=REQUEST_TAKES_AT_MOST,
        )
        expect(answer.status_code == status, f"status {status} for {method} {path}", (answer.status_code, answer.text))
        return answer

    def create(self, **wish: Any) -> Json:
        link = self.call("POST", "/short-urls", 200, {"longUrl": self.long_url, **wish}).json()
        self.made.append(link["shortCode"])
        return link

    def delete(self, code: str) -> None:
        self.call("DELETE", f"/short-urls/{quote(code)}", 204)
        self.made.remove(code)

    def visit(self, code: str, agent: str) -> None:
        url = f"{self.base}/{quote(code)}"
        answer = requests.get(
            url, allow_redirects=False, headers={"User-Agent": agent}, timeout=REQUEST_TAKES_AT_MOST
        )
        got = (answer.status_code, answer.headers.get("Location"))
        expect(got[0] in (301, 302, 307, 308) and got[1] == self.long_url, f"a redirect to {self.long_url}", got)


def reading(run: Run) -> None:
    codes = [f"py-{run.id}", f"py-{run.id}/two/three", f"ñandú-{run.id}-🦣"]

    def get_each() -> None:
        for code in codes:
            made = run.create(customSlug=code, title=f"Title of {run.id}", tags=[f"{run.id}-tag"], maxVisits=100)
            is_link(made, shortCode=code, longUrl=run.long_url)
            is_link(run.shlink.get_short_url(code), **made)

    def get_minted() -> None:
        made = run.create()
        is_link(run.shlink.get_short_url(made["shortCode"]), **made)

    def list_newest() -> None:
        links = is_page(run.shlink.list_short_urls(), "shortUrls")
        for link in links:
            is_link(link)
        found = {link["shortCode"] for link in links}
        expect(set(run.made) <= found, f"the first page to have {run.made}", found)
        dates = [datetime.fromisoformat(link["dateCreated"]) for link in links]
        expect(dates == sorted(dates, reverse=True), "the newest links first", dates)

    def list_ten() -> None:
        for number in range(11):
            run.create(customSlug=f"py-{number}-{run.id}")

        def is_full() -> None:
            pagination = run.shlink.list_short_urls()["shortUrls"]["pagination"]
            expect(pagination["itemsPerPage"] == 10, "ten links on a page", pagination)
            expect(pagination["itemsInCurrentPage"] == 10, "a full page", pagination)
            expect(pagination["totalItems"] >= 15, "all links to be counted", pagination)

        eventually(is_full)

    def edited() -> None:
        run.call("PATCH", f"/short-urls/{codes[0]}", 200, {"title": None, "tags": [], "crawlable": True})
        is_link(run.shlink.get_short_url(codes[0]), title=None, tags=[], crawlable=True, longUrl=run.long_url)

    def with_a_slash() -> None:
        client = Shlink(api_key=run.api_key, url=f"{run.base}/")
        is_link(client.get_short_url(codes[0]), shortCode=codes[0])

    run.step("get links by their slugs", get_each)
    run.step("get a link by a minted code", get_minted)
    run.step("list the newest links", lambda: eventually(list_newest))
    run.step("list ten links of more", list_ten)
    run.step("get a link after an edit", edited)
    run.step("a base URL that ends with a slash", with_a_slash)


def refusing(run: Run) -> None:
    def not_found() -> None:
        for code in [f"nobody-{run.id}", f"nobody-{run.id}/two", f"ñ-{run.id}"]:
            is_not_found(run.shlink.get_short_url(code), code)
        is_not_found(run.shlink.list_visit_data(f"nobody-{run.id}"), f"nobody-{run.id}")

    def deleted() -> None:
        code = run.create()["shortCode"]
        is_link(run.shlink.get_short_url(code))
        run.delete(code)
        is_not_found(run.shlink.get_short_url(code), code)
        is_not_found(run.shlink.list_visit_data(code), code)

    def wrong_key() -> None:
        stranger = Shlink(api_key=f"wrong-{run.id}", url=run.base)
        detail = "Provided API key does not exist or is invalid."
        code = f"py-{run.id}"
        for answer in [stranger.list_short_urls(), stranger.get_short_url(code), stranger.list_visit_data(code)]:
            is_problem(answer, 401, "invalid-api-key", "Invalid API key", detail)

    run.step("links that are not there", not_found)
    run.step("a deleted link", deleted)
    run.step("a wrong key", wrong_key)


def visits(run: Run) -> None:
    code, deep = f"visits-{run.id}", f"visits-{run.id}/dëep"

    def none_yet() -> None:
        for each in (code, deep):
            run.create(customSlug=each)
            expect(is_visits(run.shlink.list_visit_data(each)) == [], "a new link to have no visits", each)

    def some() -> None:
        for each in (code, deep):
            for agent in (BROWSER, BOT):
                eventually(lambda each=each, agent=agent: run.visit(each, agent))
        # How soon a visit is counted is not asserted; with some patience there are visits to look at.
        deadline = time.monotonic() + VISITS_ARE_STORED_WITHIN
        while time.monotonic() < deadline and not is_visits(run.shlink.list_visit_data(code, excludeBots=False)):
            time.sleep(POLL_EVERY)
        is_visits(run.shlink.list_visit_data(deep))

    def bots() -> None:
        people = is_visits(run.shlink.list_visit_data(code, excludeBots=True))
        expect(not any(visit["potentialBot"] for visit in people), "no bots", people)
        is_visits(run.shlink.list_visit_data(code, excludeBots=False))

    def dates() -> None:
        # PyShlink puts dates into the query as they are, so the plus of an offset arrives as a space.
        formats: list[Callable[[datetime], str]] = [
            lambda at: at.isoformat(timespec="seconds"),
            lambda at: quote(at.isoformat(timespec="seconds")),
            lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        ]
        for write in formats:
            before, after = write(in_hours(-1)), write(in_hours(1))
            is_visits(run.shlink.list_visit_data(code, startDate=before, endDate=after, excludeBots=False))
            for given in [{"startDate": after}, {"endDate": before}, {"startDate": after, "endDate": before}]:
                found = is_visits(run.shlink.list_visit_data(code, **given, excludeBots=False))
                expect(found == [], f"no visits with {given}", found)

    run.step("a new link has no visits", none_yet)
    run.step("visits of links", some)
    run.step("visits without bots", bots)
    run.step("visits within dates", dates)


def clean_up(run: Run) -> None:
    for code in list(run.made):
        run.delete(code)
    run.call("DELETE", f"/tags?tags[]={run.id}-tag", 204)


def main() -> int:
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} BASE_URL API_KEY", file=sys.stderr)
        return 2
    run = Run(*sys.argv[1:])
    try:
        for subject in (reading, refusing, visits):
            subject(run)
        run.step("everything that was made is deleted again", lambda: clean_up(run))
    except (Differs, requests.RequestException, LookupError, TypeError) as error:
        print(f"FAILED {run.current}\n{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"all {run.held} checks hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
