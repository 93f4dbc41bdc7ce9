// Where Chromium goes: how it reads addresses, and where redirects of a running resolver lead it.
//
// Arguments: Chromium, the URL of the API, its key, and a folder with cases.json:
//   addresses: [[base, address], …]      read by `new URL(address, base)`
//   fallbacks: [target, …]               stored as a fallback target of `domain`, and followed
//   links: [[short URL, long URL], …]    followed, and opened
// It writes results.json into the folder: for each address its href and host or null, for each
// fallback target its status and the host that was asked for last, for each link the address of
// the page after both, and what its server was asked for.
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import puppeteer from "puppeteer-core";

const [chromium, api, key, folder] = process.argv.slice(2);
const cases = JSON.parse(readFileSync(`${folder}/cases.json`, "utf8"));
const resolver = new URL(api).host;

// Every host but the resolver's own leads here.
let asked = null;
const server = createServer((request, response) => {
  // Chromium itself asks for updates of its parts, without this header of navigations.
  if (request.headers["upgrade-insecure-requests"]) {
    asked = [request.headers.host, request.url];
  }
  response.writeHead(200, { "content-type": "text/html", "cache-control": "no-store" });
  response.end("<!doctype html><link rel=icon href=data:,>");
});
await new Promise((listening) => server.listen(0, new URL(api).hostname, listening));
const sink = `${new URL(api).hostname}:${server.address().port}`;
const browser = await puppeteer.launch({
  executablePath: chromium,
  args: [
    "--no-sandbox",
    `--host-resolver-rules=MAP ${cases.domain} ${resolver}, MAP * ${sink}`,
    "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable",
  ],
});
const page = await browser.newPage();

const read = (addresses) =>
  addresses.map(([base, address]) => {
    try {
      const url = new URL(address, base);
      return { href: url.href, host: url.hostname };
    } catch {
      return null;
    }
  });
const addresses = [];
for (let start = 0; start < cases.addresses.length; start += 10_000) {
  addresses.push(...(await page.evaluate(read, cases.addresses.slice(start, start + 10_000))));
}

// Returns the address of the page that a navigation ends at, and what the server was asked for.
async function open(url) {
  // From the same page, a fragment would be a jump.
  await page.goto("about:blank");
  asked = null;
  const answer = await page.goto(url, { timeout: 20_000 }).catch(() => null);
  return { at: answer ? page.url() : null, status: answer ? answer.status() : null, asked };
}

const fallbacks = [];
for (const target of cases.fallbacks) {
  const stored = await fetch(`${api}/rest/v3/domains/redirects`, {
    method: "PATCH",
    headers: { "X-Api-Key": key, "content-type": "application/json" },
    body: JSON.stringify({ domain: cases.domain, invalidShortUrlRedirect: target }),
  });
  const led = stored.status === 200 ? await open(`http://${cases.domain}/none`) : { asked: null };
  fallbacks.push({ status: stored.status, host: led.asked ? led.asked[0] : null });
}

const links = [];
for (const [shortUrl, longUrl] of cases.links) {
  links.push([await open(shortUrl), await open(longUrl)]);
}

writeFileSync(`${folder}/results.json`, JSON.stringify({ addresses, fallbacks, links }));
await browser.close();
server.close();
console.log("all are read");
