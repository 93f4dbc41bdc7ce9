// Uses every page in Chromium as a person would, and checks what it shows.
//
//   node pages.mjs CHROMIUM BASE_URL API_KEY all|sample [FOLDER]
//
// CHROMIUM   the browser's path
// BASE_URL   where the server listens, with --tell-gone, --public-create on and the theme of THEME
// all        every page is checked in every view (colours, language, width); or each in one of them
// FOLDER     where pictures of every page are written, on a phone and a desktop, dark and light, in
//            both languages; none without it

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";

import jsqr from "jsqr";
import { PNG } from "pngjs";
import puppeteer from "puppeteer-core";

const [chromium, base, apiKey, views, folder] = process.argv.slice(2);
const host = new URL(base).host;
/** What a hostile text would run. It has to be shown as it is. */
const SCRIPT = `<img src=x onerror="window.wasRun=1"><script>window.wasRun=1</script>`;
const THEME = `Ours <b>&amp;`;
const BYTES_OF = { "/": 60_000, "/manage": 120_000 };
/** Pages that are no success. */
const STATUS_OF = { unknown: 404, "no-page": 404 };
const SOON = 15_000;
/** Language, width and device with which every page is checked, and those of further pictures. */
const VIEWS = [["en", 1200, "desktop"], ["zh", 320, "phone"]];
const VIEWS_OF_PICTURES = [["zh", 1200, "desktop"], ["en", 320, "phone"]];

const axe = await readFile(path.join(import.meta.dirname, "node_modules/axe-core/axe.min.js"), "utf8");
const problems = [];

/** A site that links lead to, and whose forms try to change something here. */
const otherSite = async () => {
  const server = createServer((request, response) => {
    response.setHeader("Content-Type", "text/html");
    const to = new URL(request.url, "http://x").searchParams.get("attack");
    const form = to && `<form method="post" action="${to}"><input name="do" value="delete"></form>
      <script>document.forms[0].submit()</script>`;
    response.end(`<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Other</title><h1>Other site</h1>${form ?? ""}`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${server.address().port}` };
};

/** Opens a page whose errors, refused resources and requests to other hosts are noted. */
const open = async (browser, { scripts = true } = {}) => {
  const context = await browser.createBrowserContext();
  await context.overridePermissions(base, ["clipboard-read", "clipboard-sanitized-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(SOON);
  await page.setJavaScriptEnabled(scripts);
  const isOurs = (url) => new URL(url).host === host;
  page.on("pageerror", (error) => problems.push(`error in ${page.url()}: ${error.message}`));
  page.on("console", (message) => {
    // A status is an answer, and checked where it is expected.
    const isStatus = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isStatus) problems.push(`console of ${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const { url } = { url: request.url() };
    const isPage = request.isNavigationRequest();
    if (!isPage && isOurs(page.url()) && !url.startsWith("data:") && !url.startsWith("blob:") && !isOurs(url))
      problems.push(`${page.url()} asks another host: ${url}`);
  });
  return page;
};

/** Presses what leads to another page. */
const press = (page, selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);
const text = (page, selector) => page.$eval(selector, (element) => element.innerText.trim());
const go = async (page, to) => (await page.goto(base + to)).status();
const fill = async (page, selector, value) => {
  await page.$eval(selector, (field) => (field.value = ""));
  await page.type(selector, value);
};
const signIn = async (page) => {
  await go(page, "/_pages/sign-in");
  await page.type("#api-key", apiKey);
  await press(page, "main button");
  assert.equal(new URL(page.url()).pathname, "/manage");
};
const openSignedIn = async (browser, options) => {
  const page = await open(browser, options);
  await signIn(page);
  return page;
};
const rest = async (method, to, body) => {
  const headers = { "X-Api-Key": apiKey, "Content-Type": "application/json" };
  const answer = await fetch(`${base}/rest/v3${to}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.status < 300, `${method} ${to}: ${answer.status} ${answer.status < 300 || (await answer.text())}`);
  return answer.status === 204 ? undefined : answer.json();
};

const until = async (is, what) => {
  const end = Date.now() + SOON;
  while (!(await is())) {
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};

/** Looks for what people who cannot see or use a mouse would trip over. */
const check = async (page, name) => {
  await page.evaluate(axe);
  const fold = (open) => page.$$eval("details.fold", (folds, open) => folds.forEach((fold) => (fold.open = open)), open);
  // What a phone folds away is looked at too.
  await fold(true);
  const { violations } = await page.evaluate(() => window.axe.run());
  for (const { id, nodes } of violations) problems.push(`axe on ${name}: ${id} ${nodes.map((node) => node.html)}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 0) problems.push(`${name} is ${wide} pixels too wide`);
  await fold(false);
};

const tests = {
  // The first test, because it needs a server without links.
  async "the first steps are ticked off by what exists"(browser, other) {
    const page = await openSignedIn(browser);
    const done = () => page.$$eval(".tour li", (steps) => steps.map((step) => step.className));
    assert.deepEqual(await done(), ["", "", ""]);
    await check(page, "the first steps");
    await page.type("#new-long-url", `${other.url}/first`);
    await press(page, ".new-link button");
    assert.deepEqual(await done(), ["done", "", ""]);
    await check(page, "the second step");
    await press(page, ".tour a");
    assert.ok(new URL(page.url()).pathname.startsWith("/manage/link/"), page.url());
  },

  async "a link is made, copied, scanned and followed"(browser, other) {
    const page = await open(browser);
    assert.equal(await go(page, "/"), 200);
    assert.ok((await page.title()).includes(THEME));
    await page.type("#long-url", `${other.url}/page?q=1`);
    await page.click("main summary");
    await page.type("#utm_source", "news letter");
    await press(page, ".one-line button");
    const short = await text(page, "#short-url");
    assert.equal(await text(page, "p.target"), `${other.url}/page?q=1&utm_source=news+letter`);
    await page.bringToFront();
    await page.click("button.copy");
    await page.waitForFunction(() => document.querySelector("button.copy").textContent === "Copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), short);
    const picture = PNG.sync.read(Buffer.from(await (await page.$(".qr-code svg")).screenshot()));
    assert.equal(jsqr(new Uint8ClampedArray(picture.data), picture.width, picture.height)?.data, short);
    // The same form again is the same link.
    const again = await Promise.all([page.waitForNavigation(), page.reload()]).then(() => text(page, "#short-url"));
    assert.equal(again, short);
    await page.goto(`${short}+`);
    assert.equal(await text(page, "p.target"), `${other.url}/page?q=1&utm_source=news+letter`);
    await press(page, "main a.button");
    assert.equal(page.url(), `${other.url}/page?q=1&utm_source=news+letter`);
  },

  async "a wrong form says what is expected and keeps what was typed"(browser) {
    const page = await open(browser);
    await go(page, "/");
    await page.type("#long-url", "javascript:alert(1)");
    await page.click("main summary");
    await page.type("#title", "kept");
    await press(page, ".one-line button");
    assert.ok((await text(page, "[role=alert]")).includes("https://example.com/page"));
    assert.equal(await page.$eval("#long-url", (field) => field.value), "javascript:alert(1)");
    assert.equal(await page.$eval("#title", (field) => field.value), "kept");
    assert.equal(await page.$eval("#long-url", (field) => field.getAttribute("aria-invalid")), "true");
    await fill(page, "#long-url", "data:text/html,x");
    await press(page, ".one-line button");
    assert.ok(await page.$("[role=alert]"));
  },

  async "passwords, expired links and unknown ones have pages of their own"(browser, other) {
    const page = await open(browser);
    await go(page, "/");
    await page.type("#long-url", `${other.url}/secret`);
    await page.click("main summary");
    await page.type("#password", "open sesame");
    await press(page, ".one-line button");
    const short = await text(page, "#short-url");
    await page.goto(`${short}+`);
    assert.ok(!(await text(page, "main")).includes(other.url), "a preview does not tell what a password protects");
    await page.goto(short);
    await page.type("#password", "wrong");
    await press(page, "main button");
    assert.ok(await page.$("[role=alert]"));
    await page.type("#password", "open sesame");
    await press(page, "main button");
    assert.equal(page.url(), `${other.url}/secret`);

    const { shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/old`, validUntil: "2020-01-01" });
    assert.equal((await page.goto(shortUrl)).status(), 410);
    assert.equal(await text(page, "h1"), "This link has expired");
    assert.equal(await go(page, "/no-such-link"), 404);
    assert.equal(await text(page, "h1"), "No such link");
  },

  async "without scripts a link is made, followed, listed and edited"(browser, other) {
    const page = await open(browser, { scripts: false });
    await go(page, "/");
    await page.type("#long-url", `${other.url}/plain`);
    await press(page, ".one-line button");
    const short = new URL(await text(page, "#short-url")).pathname;
    assert.equal(await page.$eval("button.copy", (button) => button.hidden), true);
    await signIn(page);
    await press(page, `tbody a[href="/manage/link${short}"]`);
    await fill(page, "#title", "Made without scripts");
    await press(page, ".edit button");
    assert.ok(await page.$(".stored"));
    assert.equal(await page.$eval("#title", (field) => field.value), "Made without scripts");
    await page.goto(base + short);
    assert.equal(page.url(), `${other.url}/plain`);
  },

  async "a link is searched, and two who edit it see what differs"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode } = await rest("POST", "/short-urls", { longUrl: `${other.url}/edited`, title: "Needle" });
    await go(page, "/manage");
    await page.type("#search", "needle");
    await press(page, ".filters button");
    assert.deepEqual(await page.$$eval("tbody tr", (rows) => rows.length), 1);
    await press(page, "tbody a");
    await rest("PATCH", `/short-urls/${shortCode}`, { title: "Theirs" });
    await fill(page, "#title", "Mine");
    await press(page, ".edit button");
    const cells = await page.$$eval(".conflicts td", (cells) => cells.map((cell) => cell.innerText));
    assert.deepEqual(cells, ["Mine", "Theirs"]);
    assert.equal((await rest("GET", `/short-urls/${shortCode}`)).title, "Theirs");
    await press(page, ".edit button");
    assert.equal((await rest("GET", `/short-urls/${shortCode}`)).title, "Mine");
  },

  async "a link is copied in the list, its QR code opens, and heads of columns order the list"(browser, other) {
    const page = await openSignedIn(browser);
    const made = [];
    for (const slug of ["listed-a", "listed-b"]) {
      made.push(await rest("POST", "/short-urls", { longUrl: `${other.url}/${slug}`, customSlug: slug, tags: ["listed"] }));
    }
    await go(page, "/manage?tag=listed");
    await page.bringToFront();
    await page.click("tbody tr:first-child button.copy");
    await page.waitForFunction(() => document.querySelector("tbody button.copy").textContent === "Copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), made[1].shortUrl);
    const codes = () => page.$$eval("tbody th a", (links) => links.map((link) => link.innerText));
    assert.deepEqual(await codes(), ["listed-b", "listed-a"]);
    await press(page, `thead a[href*="longUrl-ASC"]`);
    assert.deepEqual(await codes(), ["listed-a", "listed-b"]);
    assert.equal(await page.$eval("th[aria-sort=ascending]", (head) => head.innerText), "Leads to");
    await press(page, `thead a[href*="longUrl-DESC"]`);
    assert.deepEqual(await codes(), ["listed-b", "listed-a"]);
    await press(page, `thead a[href*="shortCode-ASC"]`);
    assert.deepEqual(await codes(), ["listed-a", "listed-b"]);
    assert.equal(await page.$eval("th[aria-sort=ascending]", (head) => head.innerText), "Short link");
    assert.ok((await page.$eval(`a[href*="links.csv"]`, (link) => link.href)).includes("tag=listed"));
    await press(page, `tbody a[href$="/listed-b#qr"]`);
    assert.equal(new URL(page.url()).pathname, "/manage/link/listed-b");
    assert.ok(await page.$("#qr:target svg"));
  },

  async "a link is made above the list, and what is wrong is said there"(browser, other) {
    const page = await openSignedIn(browser);
    await rest("POST", "/short-urls", { longUrl: `${other.url}/new`, domain: "new.example", tags: ["new-tag"] });
    await go(page, "/manage?tag=new-tag&domain=new.example");
    await page.click(".new-link summary");
    await page.type("#new-long-url", `${other.url}/made-here`);
    await page.type("#new-slug", "manage");
    await page.click(".new-link input[name=fetchTitle]");
    await page.type("#new-tags", "first, ");
    const offered = () => page.$$eval("#known-tags option", (options) => options.map((option) => option.value));
    assert.ok((await offered()).includes("first, new-tag"));
    await page.type("#new-tags", "new-tag");
    assert.equal(await page.$eval("#new-domain", (field) => field.value), "new.example");
    await press(page, ".new-link button");
    assert.ok(await page.$(".new-link[open] [role=alert]"));
    assert.equal(await page.$eval("#new-slug", (field) => field.getAttribute("aria-invalid")), "true");
    assert.ok(await page.$(".new-link input[name=fetchTitle]:checked"));
    await page.click(".new-link input[name=fetchTitle]");
    await fill(page, "#new-slug", "made/here");
    await page.$eval("#new-since", (field) => (field.value = "2020-01-31T08:00"));
    await press(page, ".new-link button");
    assert.equal(new URL(page.url()).pathname, "/manage");
    assert.equal(await text(page, ".made a"), "http://new.example/made/here");
    assert.equal(await text(page, "tbody th a"), "made/here");
    const { tags, meta } = await rest("GET", "/short-urls/made/here?domain=new.example");
    assert.deepEqual(tags.sort(), ["first", "new-tag"]);
    assert.ok(meta.validSince.startsWith("2020-01-31"), meta.validSince);
  },

  async "on a phone filters are folded away and links are cards"(browser, other) {
    const page = await openSignedIn(browser);
    await rest("POST", "/short-urls", { longUrl: `${other.url}/card`, title: "A card", tags: ["card"] });
    await page.setViewport({ width: 320, height: 640 });
    await go(page, "/manage?tag=card");
    const isShown = (selector) => page.$eval(selector, (element) => element.checkVisibility({ contentVisibilityAuto: true }));
    assert.equal(await isShown("#search"), false);
    const widths = await page.$eval(".cards", (table) => [table.scrollWidth, table.parentElement.clientWidth]);
    assert.ok(widths[0] <= widths[1], `${widths}`);
    await page.click(".fold summary");
    assert.equal(await isShown("#search"), true);
    await page.setViewport({ width: 1200, height: 800 });
    await go(page, "/manage?tag=card");
    assert.equal(await isShown("#search"), true, "there is room for them");
  },

  async "on a phone domains, webhooks, tags, keys and the audit log are cards with their states in sight"(browser, other) {
    const page = await openSignedIn(browser);
    await rest("POST", "/short-urls", { longUrl: `${other.url}/cards`, domain: "a-card-of-a-long-name.example", tags: ["cards"] });
    const { id } = await rest("POST", "/webhooks", { url: "https://hooks.example/a-long-path-of-a-receiver", events: ["link.created", "link.deleted"] });
    await page.setViewport({ width: 320, height: 640 });
    for (const [to, hasStates] of [["/manage/domains", true], ["/manage/webhooks", true], ["/manage/keys", true], ["/manage/tags", false], ["/manage/audit", false]]) {
      await go(page, to);
      await page.$$eval(".cards details", (forms) => forms.forEach((form) => (form.open = true)));
      const [wide, room] = await page.$eval(".cards", (table) => [table.scrollWidth, table.parentElement.clientWidth]);
      assert.ok(wide <= room, `${to}: ${wide} of ${room}`);
      const states = await page.$$eval(".cards .state", (states) => states.map((state) => state.getBoundingClientRect()).map(({ left, right }) => [left, right]));
      assert.equal(states.length > 0, hasStates, to);
      assert.ok(states.every(([left, right]) => left >= 0 && left < right && right <= 320), `${to}: ${states}`);
    }
    await rest("DELETE", `/webhooks/${id}`);
  },

  async "an edit is undone beside the notice of it, and from the history"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode } = await rest("POST", "/short-urls", { longUrl: `${other.url}/undone`, title: "One" });
    const title = async () => (await rest("GET", `/short-urls/${shortCode}`)).title;
    await go(page, `/manage/link/${shortCode}`);
    await press(page, ".edit button");
    assert.equal(await page.$("form.undo"), null, "nothing was changed");
    await fill(page, "#title", "Two");
    await press(page, ".edit button");
    await press(page, "form.undo button");
    assert.equal(await title(), "One");
    assert.equal(await text(page, "tbody tr:last-child .changes"), "Title: One → Two");
    await press(page, "tbody tr:first-child button");
    assert.equal(await title(), "Two");
    await press(page, "tbody tr:nth-child(2) button");
    assert.match(await text(page, ".wrong"), /changed again since: Title/);
    assert.equal(await title(), "Two");
  },

  async "a change is scheduled with the form, listed and cancelled"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode } = await rest("POST", "/short-urls", { longUrl: `${other.url}/later`, title: "One" });
    await go(page, `/manage/link/${shortCode}`);
    await fill(page, "#title", "Two");
    await page.$eval("#scheduledFor", (field) => (field.value = "2090-01-01T00:00:00"));
    await press(page, ".edit button");
    assert.equal(await text(page, "#schedule + div .changes"), "Title: Two");
    assert.equal((await rest("GET", `/short-urls/${shortCode}`)).title, "One");
    await press(page, "#schedule + div button");
    assert.equal(await page.$("#schedule"), null);
  },

  async "a deleted link is restored from the trash"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode, shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/deleted` });
    await go(page, `/manage/link/${shortCode}`);
    await press(page, "form.danger button");
    assert.equal((await page.goto(shortUrl)).status(), 410);
    await go(page, "/manage?deleted=true");
    await press(page, `form[action="/manage/link/${shortCode}"] button`);
    await page.goto(shortUrl);
    assert.equal(page.url(), `${other.url}/deleted`);
  },

  async "chosen links are changed at once, and those that cannot be stay chosen"(browser, other) {
    const page = await openSignedIn(browser);
    const links = [];
    for (const slug of ["chosen/1", "chosen/2"]) {
      links.push(await rest("POST", "/short-urls", { longUrl: `${other.url}/${slug}`, customSlug: slug, tags: ["chosen"] }));
    }
    await rest("POST", "/short-urls", { longUrl: `${other.url}/theirs`, customSlug: "chosen/2", domain: "moved.example" });
    await go(page, "/manage?tag=chosen&order=longUrl-ASC");
    await page.select("#to", "moved.example");
    await press(page, "button[value=move]");
    assert.ok((await text(page, "[role=alert]")).includes("Select links"));
    assert.equal(await page.$eval("#to", (field) => field.value), "moved.example");
    await page.click("#all");
    await press(page, "button[value=move]");
    assert.ok((await text(page, ".stored")).startsWith("Changed 1 link"));
    assert.ok((await text(page, "[role=alert]")).includes("chosen/2"));
    assert.deepEqual(await page.$$eval('input[name="link"]:checked', (boxes) => boxes.map((box) => box.value)), [" chosen/2"]);
    assert.equal((await rest("GET", "/short-urls/chosen/1?domain=moved.example")).longUrl, `${other.url}/chosen/1`);
    await press(page, "button[value=disable]");
    assert.equal((await rest("GET", "/short-urls/chosen/2")).enabled, false);
    await page.click("#all");
    await press(page, "form#chosen button[value=delete]");
    assert.equal(await page.$$eval("tbody tr", (rows) => rows.length), 0, "both are gone");
    await press(page, "form.undo button");
    assert.equal(await page.$$eval("tbody tr", (rows) => rows.length), 2, "both are back");
    assert.equal(await page.$("form.undo"), null);
  },

  async "a thousand pasted links are looked through, made and downloaded"(browser, other) {
    const page = await openSignedIn(browser);
    await go(page, "/manage/bulk");
    const rows = Array.from({ length: 1_000 }, (_, row) => `${other.url}/bulk/${row},"bulk,=${row}"`);
    const paste = async (lines) => page.$eval("#rows", (field, text) => (field.value = text), lines.join("\n"));
    await paste(["longUrl,tags", ...rows.slice(0, 2), "javascript:nonsense,x"]);
    await press(page, "button[value=preview]");
    const wrong = await page.$$eval("tbody tr", (rows) => rows.map((row) => row.innerText));
    assert.ok(wrong[0].startsWith("4") && wrong[0].includes("nonsense"), wrong[0]);
    await rest("POST", "/short-urls", { longUrl: `${other.url}/taken`, customSlug: "bulk-taken" });
    await paste(["url,slug", `${other.url},bulk-taken`, `${other.url},bulk-free`, `${other.url},bulk-free`]);
    await press(page, "button[value=preview]");
    const taken = await page.$eval("table", (table) => [...table.tBodies[0].rows].map((row) => row.innerText));
    assert.ok(taken.length === 2 && taken[0].includes("bulk-taken is taken") && /^4[^]*bulk-free is in this table twice/.test(taken[1]), `${taken}`);
    const template = await page.evaluate(async (link) => (await fetch(link)).text(), await page.$eval(`a[href*="bulk.csv"]`, (link) => link.href));
    await paste([template.trim()]);
    await press(page, "button[value=preview]");
    assert.equal(await page.$$eval("table", (tables) => tables.length), 1, "no row of the template is wrong");
    await paste(["longUrl,tags", ...rows]);
    await press(page, "button[value=preview]");
    assert.equal(await page.$$eval("tbody tr", (rows) => rows.length), 10);
    await press(page, "button[value=create]");
    assert.ok((await text(page, ".stored")).includes("1,000"));
    assert.equal(await page.$$eval("tbody tr", (rows) => rows.length), 1_000);
    const csv = (await page.$eval("#csv", (field) => field.value)).trim().split("\n");
    assert.equal(csv.length, 1_001);
    await page.goto(await page.$eval("tbody tr:last-child a", (link) => link.href));
    assert.equal(page.url(), `${other.url}/bulk/999`);
  },

  async "visits are counted while the page is open, and downloaded"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode, shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/counted`, tags: ["counted"] });
    const visit = () => fetch(shortUrl, { redirect: "manual", headers: { "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Referer: `https://${encodeURIComponent("<b>")}.example/` } });
    for (let count = 0; count < 3; count += 1) await visit();
    const shows = (count) => page.waitForFunction((count) => document.querySelector("[data-live]").textContent.trim() === `${count}`, {}, count);
    const until = Date.now() + SOON;
    do await go(page, `/manage/statistics?of=link&code=${shortCode}&range=today`);
    while ((await text(page, "[data-live]")) !== "3" && Date.now() < until);
    await shows(3);
    await page.bringToFront();
    await visit();
    await shows(4);
    await page.reload();
    const ranked = await text(page, ".rankings");
    assert.ok(ranked.includes("Firefox") && ranked.includes("Linux"), ranked);
    assert.ok(await page.$("svg.chart"));
    const csv = await page.evaluate(async (link) => (await fetch(link)).text(), await page.$eval(`a[href*="statistics.csv"]`, (link) => link.href));
    assert.ok(csv.includes("Firefox"), csv);
    await go(page, "/manage/statistics?of=tag&tag=counted");
    assert.equal(await text(page, "[data-live]"), "4");
  },

  async "on a phone figures come first, a young link has a short chart, and an empty map says why"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode, shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/young` });
    await fetch(shortUrl, { redirect: "manual" });
    await until(async () => (await rest("GET", `/short-urls/${shortCode}`)).visitsSummary.total === 1, "the visit is counted");
    await page.setViewport({ width: 360, height: 640 });
    await go(page, `/manage/statistics?of=link&code=${shortCode}&range=30d`);
    const bottom = await page.$eval("[data-live]", (figure) => figure.getBoundingClientRect().bottom);
    assert.ok(bottom < 640, `the number of visits ends at ${bottom}`);
    const bars = await page.$$eval(".chart .bar", (bars) => bars.length);
    assert.ok(bars < 10, `${bars} intervals since the link was made`);
    assert.equal(await page.$(".map"), null);
    assert.ok((await text(page, ".rankings")).includes("no visit has a known country"));
    await page.click(".fold summary");
    await press(page, `.choices a[href*="range=7d"]`);
    assert.equal(await text(page, "[data-live]"), "1");
  },

  async "a tag is renamed, and the account of numbers balances"(browser, other) {
    const page = await openSignedIn(browser);
    await rest("POST", "/short-urls", { longUrl: `${other.url}/tagged`, tags: ["before-it"] });
    await go(page, "/manage/tags?search=before-it");
    await fill(page, "tbody input[name=newName]", "after-it");
    await press(page, "tbody tr button");
    const { tags } = await rest("GET", "/tags");
    assert.ok(tags.data.includes("after-it"), `${tags.data} ${await text(page, "main")}`);
    await go(page, "/cluster");
    assert.ok((await text(page, "main")).includes("Balances"));
  },

  async "rules are added, moved and tried, and lead as the page said"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode, shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/default` });
    await go(page, `/manage/rules/${shortCode}`);
    const isExplained = () => page.$eval("#values-text", (text) => text.checkVisibility());
    assert.equal(await isExplained(), false);
    await page.click(".values summary");
    assert.equal(await isExplained(), true);
    const add = async (to, value) => {
      await fill(page, "#longUrl", `${other.url}${to}`);
      await page.select("#add-rule select[name=type]", "language");
      await fill(page, "#add-rule input[name=matchValue]", value);
      await press(page, "#add-rule button");
    };
    await add("/german", "de");
    await add("/any-german", "de-AT");
    await press(page, "button[value=up]");
    const { redirectRules } = await rest("GET", `/short-urls/${shortCode}/redirect-rules`);
    assert.deepEqual(redirectRules.map(({ longUrl }) => new URL(longUrl).pathname), ["/any-german", "/german"]);
    const led = async (language) => {
      await fill(page, "#language", language);
      await press(page, ".filters button");
      const answer = await fetch(shortUrl, { redirect: "manual", headers: { "Accept-Language": language } });
      const location = answer.headers.get("location");
      assert.ok((await text(page, "main")).includes(location), `${language}: ${location}`);
      return new URL(location).pathname;
    };
    assert.equal(await led("de-AT"), "/any-german");
    assert.equal(await led("fr"), "/default");
  },

  async "a form that is sent again and again makes one link, and says what is gone"(browser, other) {
    const page = await open(browser);
    await go(page, "/");
    await page.type("#long-url", `${other.url}/taken`);
    await page.click("main summary");
    await page.type("#slug", "manage");
    await page.type("#password", "still here");
    await press(page, ".one-line button");
    assert.ok(await page.$("[role=alert]"));
    await fill(page, "#slug", "");
    await press(page, ".one-line button");
    const short = await text(page, "#short-url");
    await page.goto(short);
    assert.ok(await page.$("#password"), "the password was kept");
  },

  async "a session ends when its browser signs out, for a copy of its cookie too"(browser) {
    const page = await openSignedIn(browser);
    const cookies = await page.cookies();
    const session = cookies.find(({ name }) => name === "shortmint_session");
    assert.ok(session.httpOnly && session.sameSite === "Lax");
    await press(page, ".account button");
    await page.setCookie(session);
    await go(page, "/manage");
    assert.equal(new URL(page.url()).pathname, "/_pages/sign-in");
  },

  async "a key is made with one's own key only, shown once, and revoked"(browser) {
    const page = await openSignedIn(browser);
    await go(page, "/manage/keys");
    const make = async (own) => {
      await fill(page, "#name", "made-here");
      await page.$eval('input[value="read"]', (box) => (box.checked = true));
      await page.type("#own", own);
      await press(page, "#add-key button");
    };
    await make("not-the-key");
    assert.ok(await page.$("[role=alert]"));
    assert.equal(await page.$eval("#name", (field) => field.value), "made-here");
    await make(apiKey);
    const secret = await text(page, "#secret");
    const calls = () => fetch(`${base}/rest/v3/short-urls`, { headers: { "X-Api-Key": secret } }).then(({ status }) => status);
    assert.equal(await calls(), 200);
    await go(page, "/manage/keys");
    assert.ok(!(await page.content()).includes(secret));
    await page.click('summary[aria-label="Edit the key made-here"]');
    await page.type("tbody tr:first-child input[name=apiKey]", apiKey);
    await press(page, "tbody tr:first-child button[value=revoke]");
    assert.ok(await page.$(".stored"));
    await until(async () => (await calls()) === 401, "the key is revoked");
    await go(page, "/manage/audit?object=made-here&action=revoke-key");
    const [row, ...others] = await page.$$eval("tbody tr", (rows) => rows.map((row) => row.innerText));
    assert.ok(row.includes("initial") && row.includes("made-here") && others.length === 0, row);
  },

  async "a webhook is added and disabled without scripts, and its secret is shown once"(browser) {
    const page = await openSignedIn(browser, { scripts: false });
    await go(page, "/manage/webhooks");
    assert.ok((await text(page, ".empty")).includes("no webhooks yet"));
    await page.type("#url", "https://hooks.example/in");
    await page.click('input[value="link.blocked"]');
    await press(page, "button[value=create]");
    const secret = await text(page, "#secret");
    assert.ok(secret.startsWith("whsec_"), secret);
    await press(page, "tbody th a");
    assert.ok(!(await page.content()).includes(secret));
    await press(page, "button[value=disable]");
    assert.equal(await text(page, ".headline .state"), "Disabled");
    await page.click("details.danger summary");
    await press(page, "details.danger button");
    assert.ok(await page.$(".empty"), "it is gone");
  },

  async "a QR code has the logo, and is read with it"(browser, other) {
    const page = await open(browser);
    const { shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/logo` });
    const image = async (query) => PNG.sync.read(Buffer.from(await (await fetch(`${shortUrl}/qr-code?size=500&margin=30${query}`)).arrayBuffer()));
    const [plain, branded] = [await image(""), await image("&logo=on&download")];
    const middle = ({ data, width, height }) => [...data.subarray(4 * (width * (height / 2) + width / 2)).subarray(0, 3)];
    assert.deepEqual(middle(branded), [10, 127, 90]);
    for (const { data, width, height } of [plain, branded]) assert.equal(jsqr(new Uint8ClampedArray(data), width, height)?.data, shortUrl);
    await go(page, "/");
    await page.type("#long-url", `${other.url}/logo`);
    await press(page, ".one-line button");
    assert.ok(await page.$('input[name="logo"]'));
  },

  async "a form of another site changes nothing"(browser, other) {
    const page = await openSignedIn(browser);
    const { shortCode } = await rest("POST", "/short-urls", { longUrl: `${other.url}/mine` });
    const attacked = `${base}/manage/link/${shortCode}`;
    await Promise.all([
      page.waitForResponse((response) => response.url() === attacked && response.status() === 403),
      page.goto(`${other.url}/?attack=${encodeURIComponent(attacked)}`),
    ]);
    assert.equal((await rest("GET", `/short-urls/${shortCode}`)).shortCode, shortCode);
  },

  async "scripts in titles, tags, visits, addresses and the theme are shown as text"(browser, other) {
    const page = await openSignedIn(browser);
    const body = { longUrl: `${other.url}/?x=${encodeURIComponent(SCRIPT)}`, title: SCRIPT, tags: [SCRIPT], description: SCRIPT };
    const { shortCode, shortUrl } = await rest("POST", "/short-urls", body);
    await fetch(shortUrl, { redirect: "manual", headers: { "User-Agent": SCRIPT, Referer: `https://x.example/${SCRIPT}` } });
    await fetch(shortUrl, { redirect: "manual", headers: { "User-Agent": `Firefox/140 (${SCRIPT})`, Referer: SCRIPT } });
    await until(async () => (await rest("GET", `/short-urls/${shortCode}`)).visitsSummary.total === 2, "visits are counted");
    const written = encodeURIComponent(SCRIPT);
    const places = [
      `/manage/link/${shortCode}`, "/manage", "/manage/tags", "/manage/audit", "/", `/manage/statistics?of=link&code=${shortCode}`,
      `/manage?search=${written}&gone=${written}+${written}&made=${written}+${written}&domain=${written}&tag=${written}&order=${written}`,
      `/manage/statistics?of=tag&tag=${written}`, `/manage/statistics?of=domain&domain=${written}`, `/manage/link/${written}`,
      `/manage/rules/${shortCode}?userAgent=${written}&language=${written}&ip=${written}`, `/_pages/sign-in?to=${written}`,
      `/manage/create?longUrl=${written}`, `/${written}`, `/manage/domains?search=${written}`, `/manage/targets?search=${written}`,
      `/manage/explain?shortUrl=${written}&userAgent=${written}&ip=${written}`,
    ];
    for (const to of places) {
      await go(page, to);
      assert.equal(await page.evaluate(() => window.wasRun), undefined, to);
    }
    const hosts = ["javascript:window.wasRun=1", "data:text/html,<script>window.wasRun=1</script>"];
    for (const longUrl of hosts) {
      const refused = await fetch(`${base}/rest/v3/short-urls`, { method: "POST", headers: { "X-Api-Key": apiKey, "Content-Type": "application/json" }, body: JSON.stringify({ longUrl }) });
      assert.equal(refused.status, 400, longUrl);
    }
    await go(page, "/manage");
    assert.ok((await text(page, "tbody")).includes("<script>"));
    await page.goto(`${shortUrl}+`);
    assert.ok((await text(page, "main")).includes("<script>"));
    assert.equal(await page.evaluate(() => window.wasRun), undefined);
    assert.ok((await text(page, "footer")).includes("<script>"));
  },

  async "the navigation takes one row of a phone, and its menu opens with the keyboard"(browser) {
    const page = await open(browser);
    await page.setViewport({ width: 320, height: 640 });
    const isOneRow = (selector) => page.$$eval(selector, (parts) => {
      const middles = parts.map((part) => part.getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2);
      return middles.length > 1 && Math.max(...middles) - Math.min(...middles) < 10;
    });
    await go(page, "/");
    assert.ok(await isOneRow(".brand, .account"), "the name of the service and the way to sign in");
    await signIn(page);
    for (const language of ["zh", "en"]) {
      await go(page, `/_pages/preferences?language=${language}&to=/manage/bulk`);
      assert.equal((await page.$$(".parts > a")).length, 4);
      assert.ok(await isOneRow(".parts > *"), language);
    }
    assert.equal(await page.$eval(".menu summary", (summary) => summary.getAttribute("aria-current")), "true");
    assert.equal(await page.$eval(".menu a[aria-current=page]", (link) => link.getAttribute("href")), "/manage/bulk");
    await page.focus(".menu summary");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`.menu a[href="/manage/domains"]`, { visible: true });
    await check(page, "the menu");
    await press(page, `.menu a[href="/manage/domains"]`);
    const isOpen = () => page.$eval(".menu", (menu) => menu.open);
    assert.equal(await isOpen(), false);
    const closes = async (close, what) => {
      await page.click(".menu summary");
      await page.focus(".menu a");
      assert.equal(await isOpen(), true);
      await close();
      assert.equal(await isOpen(), false, what);
    };
    await closes(() => page.keyboard.press("Escape"), "Escape");
    assert.ok(await page.$(".menu summary:focus"), "the focus is not lost");
    await closes(() => page.mouse.click(4, 600), "a click outside");
    await closes(() => page.focus("footer a"), "the focus outside");
  },

  async "language and colours follow the browser and then the choice"(browser) {
    const page = await open(browser);
    await page.setExtraHTTPHeaders({ "Accept-Language": "zh-CN,zh;q=0.9" });
    await go(page, "/no-such-link");
    assert.equal(await text(page, "h1"), "链接不存在");
    await press(page, "a[hreflang=en]");
    assert.equal(await text(page, "h1"), "No such link");
    await press(page, `footer a[href*="colours=dark"]`);
    assert.equal(await page.$eval("html", (html) => html.dataset.colours), "dark");
    assert.equal(new URL(page.url()).pathname, "/no-such-link");
  },

  async "pages are small"(browser) {
    const page = await openSignedIn(browser);
    for (const [to, most] of Object.entries(BYTES_OF)) {
      const session = await page.createCDPSession();
      let bytes = 0;
      session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
      await session.send("Network.enable");
      await page.setCacheEnabled(false);
      await page.goto(base + to, { waitUntil: "networkidle0" });
      await page.setCacheEnabled(true);
      await session.detach();
      assert.ok(bytes > 1_000 && bytes <= most, `${to} has ${bytes} bytes`);
    }
  },

  async "every page is accessible, in both colours and languages"(browser, other) {
    const page = await open(browser);
    // Random codes are of many widths; this one is wider than a phone.
    const customSlug = `seen-${"W".repeat(32)}`;
    const { shortCode, shortUrl } = await rest("POST", "/short-urls", { longUrl: `${other.url}/seen`, customSlug, tags: ["seen"] });
    const elsewhere = await rest("POST", "/short-urls", { longUrl: `${other.url}/elsewhere`, domain: "seen.example" });
    for (const country of ["AT", "CN", "SG", "US"]) await fetch(shortUrl, { redirect: "manual", headers: { "X-Country": country } });
    const { id: webhook } = await rest("POST", "/webhooks", { url: "https://hooks.example/in", events: ["link.blocked"], tag: "seen", description: "Seen" });
    await rest("POST", `/webhooks/${webhook}/test`);
    const locked = await rest("POST", "/short-urls", { longUrl: `${other.url}/locked`, password: "x" });
    const visitors = { home: "/", unknown: "/no-such-link", preview: `${new URL(shortUrl).pathname}+`, "sign-in": "/_pages/sign-in",
      password: new URL(locked.shortUrl).pathname };
    const signedIn = { create: "/", links: "/manage", trash: "/manage?deleted=true", link: `/manage/link/${shortCode}`,
      "no-page": "/manage/nothing", tags: "/manage/tags", domains: "/manage/domains", bulk: "/manage/bulk", log: "/manage/audit",
      statistics: "/manage/statistics", cluster: "/cluster", rules: `/manage/rules/${shortCode}`, targets: "/manage/targets", reservations: "/manage/reservations",
      "qr-sheet": "/manage/qr-sheet", "statistics-link": `/manage/statistics?of=link&code=${shortCode}`, orphans: "/manage/statistics?of=orphans", keys: "/manage/keys",
      webhooks: "/manage/webhooks", webhook: `/manage/webhooks/${webhook}`, explain: `/manage/explain?shortUrl=${shortCode}`,
      "link-other": `/manage/link/${elsewhere.shortCode}?domain=seen.example` };
    await rest("POST", "/short-urls", { longUrl: `${other.url}/gone`, customSlug: "seen-gone" });
    const signInAndDelete = async (page) => {
      await signIn(page);
      await go(page, "/manage/link/seen-gone");
      await press(page, "form.danger button");
      // Another session would not be offered the undo.
      signedIn.result = page.url().slice(base.length);
    };
    let view = 0;
    if (folder) await mkdir(folder, { recursive: true });
    for (const [names, before] of [[visitors, async () => {}], [signedIn, signInAndDelete]]) {
      await before(page);
      for (const colours of ["light", "dark"]) {
        for (const [language, width, device] of folder ? [...VIEWS, ...VIEWS_OF_PICTURES] : VIEWS) {
          await page.setViewport({ width, height: 800 });
          view += 1;
          for (const [index, [name, to]] of Object.entries(names).entries()) {
            if (views === "sample" && (index + view) % 4 !== 0) continue;
            const status = await go(page, `/_pages/preferences?language=${language}&colours=${colours}&to=${encodeURIComponent(to)}`);
            assert.equal(status, STATUS_OF[name] ?? 200, name);
            await check(page, `${name} (${colours}, ${device})`);
            if (folder) await page.screenshot({ path: path.join(folder, `${name}-${device}-${colours}-${language}.png`), fullPage: true });
          }
        }
      }
    }
  },
};

const other = await otherSite();
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test(browser, other);
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
for (const problem of problems) console.log(`PROBLEM: ${problem}`);
await browser.close();
other.server.close();
if (failed || problems.length) process.exit(1);
console.log("all holds");
