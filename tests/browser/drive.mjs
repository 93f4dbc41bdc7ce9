// Opens Shlink's web client in Chromium, on a link with many visits, checks what a person sees, and
// counts the clicks of tasks that the pages of this project are compared in (`tasks.mjs`).
//
//   node drive.mjs CHROMIUM BASE_URL API_KEY SHORT_CODE VISITS TAG
//
// CHROMIUM   the browser's path
// BASE_URL   where the server listens
// VISITS     how many visits the link has, which is all visits of the server; from people, on one domain

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { build } from "esbuild";
import puppeteer from "puppeteer-core";

const [chromium, baseUrl, apiKey, shortCode, count, tag] = process.argv.slice(2);
const visits = Number(count);
const LOADED_WITHIN = 120_000;
const SEEN_WITHIN = 20_000;
/** Visits that come close together. */
const BURST = 5;
/** How long a count has to stay as it is. */
const STAYS_FOR = 3_000;

/** Text as a locator sees it: numbers with separators. */
const shown = (number) => new Intl.NumberFormat("en").format(number);

/** The client, with the server's address in its page. Every path is a page of its own. */
const serve = async () => {
  const bundle = await build({
    entryPoints: [path.join(import.meta.dirname, "client.jsx")],
    bundle: true,
    write: false,
    outdir: "out",
    format: "esm",
    jsx: "automatic",
    loader: { ".png": "dataurl" },
    define: { "process.env.NODE_ENV": '"production"' },
    nodePaths: [path.join(process.cwd(), "node_modules")],
    logLevel: "error",
  });
  const script = bundle.outputFiles.find((file) => file.path.endsWith(".js")).contents;
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,"><title>Shlink</title>
<script type="application/json" id="server">${JSON.stringify({ baseUrl, apiKey })}</script>
<div id="page"></div><script type="module" src="/client.js"></script></html>`;
  const server = createServer((request, response) => {
    const isScript = request.url === "/client.js";
    response.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : page);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
};

/** What went wrong in a page beside what it shows. */
const watch = (page, problems) => {
  page.on("pageerror", (error) => problems.push(`error in the page: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("response", (response) => response.status() >= 400 && problems.push(`${response.status()} ${response.url()}`));
};

/** Waits until a page that is about to be read is told of visits: it hears of none before. */
const subscribes = (page) => {
  const isStream = (answer) => answer.request().method() === "GET" && answer.url().includes("/.well-known/mercure");
  return page.waitForResponse(isStream, { timeout: LOADED_WITHIN });
};

/** Opens a page of the client, and waits until it shows a text. */
const open = async (browser, origin, route, text, problems, isReady = () => undefined) => {
  const page = await browser.newPage();
  watch(page, problems);
  const started = performance.now();
  await Promise.all([isReady(page), page.goto(`${origin}${route}`)]);
  await sees(page, text, LOADED_WITHIN);
  console.log(`${route}: ${text} after ${Math.round(performance.now() - started)} ms`);
  return page;
};

const sees = async (page, text, timeout = SEEN_WITHIN) => {
  const isThere = (text) => document.body.innerText.replace(/\s+/g, " ").includes(text);
  await page.waitForFunction(isThere, { timeout, polling: 100 }, text).catch(async () => {
    const all = await page.evaluate(() => document.body.innerText);
    assert.fail(`expected ${JSON.stringify(text)} at ${page.url()}, found: ${all.slice(0, 2_000)}`);
  });
};

/** Follows the link as a person with a browser of this name. */
const visit = async (code) => {
  const answer = await fetch(`${baseUrl}/${code}`, {
    redirect: "manual",
    headers: { "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0" },
  });
  assert.equal(answer.status, 302);
};

/** Checks that visits close together count one by one, each once. Returns how many there were. */
const checkBursts = async (go) => {
  const answer = await fetch(`${baseUrl}/rest/v3/short-urls`, {
    method: "POST",
    headers: { "X-Api-Key": apiKey, "Content-Type": "application/json" },
    body: JSON.stringify({ longUrl: "https://example.com/burst", tags: [tag] }),
  });
  const { shortCode: code } = await answer.json();
  const page = await go(`/short-code/${code}/visits/by-time`, "Visits: 0", subscribes);
  let counted = 0;
  const counts = () => sees(page, `Visits: ${counted}`);
  for (const pause of [0, 50, 200]) {
    for (let number = 0; number < BURST; number++) {
      await visit(code);
      await delay(pause);
    }
    counted += BURST;
    await counts();
  }
  // The page that is opened anew has read what came before, and is told of the next visit only.
  await Promise.all([subscribes(page), page.reload()]);
  await counts();
  await visit(code);
  counted += 1;
  await counts();
  await delay(STAYS_FOR);
  await counts();
  await page.close();
  console.log("bursts are counted");
  return counted;
};

const check = async (browser, origin) => {
  const problems = [];
  const go = (route, text, isReady) => open(browser, origin, route, text, problems, isReady);

  const byTime = await go(`/short-code/${shortCode}/visits/by-time`, `Visits: ${shown(visits)}`, subscribes);
  for (const counted of [visits + 1, visits + 2]) {
    await visit(shortCode);
    await sees(byTime, `Visits: ${shown(counted)}`);
  }
  console.log("the counter is live");
  await byTime.close();

  const counted = visits + 2;
  const all = counted + (await checkBursts(go));

  const byContext = await go(`/short-code/${shortCode}/visits/by-context`, "Operating systems");
  for (const text of ["Browsers", "Referrers", "Firefox", "Linux"]) await sees(byContext, text);
  await byContext.close();

  const list = await go(`/short-code/${shortCode}/visits/list`, `Visits: ${shown(counted)}`);
  const isListed = () => document.querySelectorAll("table tbody tr").length >= 10;
  await list.waitForFunction(isListed, { timeout: SEEN_WITHIN });
  await sees(list, "Firefox");
  await list.close();

  for (const route of [`/tag/${tag}/visits`, "/domain/DEFAULT/visits", "/non-orphan-visits"]) {
    await (await go(`${route}/by-time`, `Visits: ${shown(all)}`)).close();
  }
  const links = await go("/list-short-urls/1", shortCode);
  await sees(links, shown(counted));
  await links.close();

  const orphans = await go("/orphan-visits/by-time", "Visits: 0");
  assert.equal((await fetch(`${baseUrl}/nobody-has-this`, { redirect: "manual" })).status, 404);
  await sees(orphans, "Visits: 1");
  await orphans.close();
  await countClicks(browser, go);
  assert.deepEqual(problems, [], "nothing goes wrong beside what is shown");
};

/** Tasks of `tasks.mjs` beside its first twenty, which were driven by hand: clicks, and the way as a person goes. */
const TASKS = {
  "Order the links by their visits": [3, async (page, click) => {
    await click("nav ::-p-text(List short URLs)");
    // The first click orders the other way.
    await click("thead ::-p-text(Visits)");
    await click("thead ::-p-text(Visits)");
    await page.waitForFunction((code) => document.querySelector("tbody tr")?.innerText.includes(code), {}, shortCode);
    assert.ok(page.url().includes("visits-DESC"), page.url());
  }],
  "Download the links of a tag as CSV": [3, async (page, click, folder) => {
    await click("nav ::-p-text(Manage tags)");
    await click(`a[href*="list-short-urls/1?tags=${tag}"]`);
    await click("button::-p-text(Export \\(2\\))");
    const lines = async () => (await readFile(path.join(folder, "short_urls.csv"), "utf8")).trim().split("\n");
    while (!(await readdir(folder)).includes("short_urls.csv")) await delay(100);
    assert.equal((await lines()).length, 1 + 2);
  }],
  "Copy a short link in the list, and open its QR code": [3, async (page, click) => {
    const short = await page.$eval("tbody td:nth-child(2) a", (link) => link.href);
    await page.bringToFront();
    await click('tbody button[title="Copy to clipboard"]');
    await page.waitForFunction(async (short) => (await navigator.clipboard.readText()) === short, {}, short);
    await click("tbody td:last-child button");
    await click("tbody td:last-child ::-p-text(QR code)");
    await sees(page, `QR code for ${short}`);
  }],
  "Find the links of a tag on a phone": [2, async (page, click) => {
    await click('a[href="/manage-tags"]:not(nav a)');
    await click(`a[href*="list-short-urls/1?tags=${tag}"]`);
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);
  }],
};

/** Does each task from the overview, and checks the clicks that it takes. */
const countClicks = async (browser, go) => {
  const folder = await mkdtemp(path.join(tmpdir(), "shortmint-downloads-"));
  const session = await browser.target().createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder });
  const context = browser.defaultBrowserContext();
  for (const [name, [expected, way]] of Object.entries(TASKS)) {
    const page = await go("/overview", "Recently created URLs");
    await context.overridePermissions(new URL(page.url()).origin, ["clipboard-read", "clipboard-sanitized-write"]);
    await page.setViewport(name.includes("phone") ? { width: 360, height: 640 } : { width: 1400, height: 1000 });
    let clicks = 0;
    await way(page, async (selector) => {
      clicks += 1;
      await page.locator(selector).click();
    }, folder);
    assert.equal(clicks, expected, name);
    console.log(`${name}: ${clicks} clicks`);
    await page.close();
  }
  await rm(folder, { recursive: true, force: true });
};

const server = await serve();
const profile = await mkdtemp(path.join(tmpdir(), "shortmint-browser-"));
const browser = await puppeteer.launch({
  executablePath: chromium,
  userDataDir: profile,
  protocolTimeout: LOADED_WITHIN,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
  ],
});
try {
  await check(browser, `http://127.0.0.1:${server.address().port}`);
  console.log("all holds");
} finally {
  await browser.close();
  server.close();
  await rm(profile, { recursive: true, force: true });
}
