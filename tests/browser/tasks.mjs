// Does forty tasks of everyday work in the pages, as a person would, and counts the clicks.
//
//   node tasks.mjs CHROMIUM BASE_URL API_KEY all|sample FOLDER
//
// CHROMIUM   the browser's path
// BASE_URL   where the server listens, with --tell-gone and --proxy-headers country=X-Country
// sample     does every fourth task
// FOLDER     where downloads are put
//
// A click counts 1, also one that puts the cursor into a field; a choice from a list counts 2;
// Enter counts 1; typing counts nothing. Every task begins at the list of links, signed in, and
// ends when its result is seen. SHLINK has what the same takes in Shlink's own web client
// (`@shlinkio/shlink-web-component` 0.18.0 with the settings of `shlink-web-client`), by the same
// rule and from its overview, driven in Chromium on 2026-11-26; `null` is what it cannot do.
// SHLINK_LATER has those of the later tasks that it can do: `drive.mjs` does them there, each in the
// shortest way. The other later tasks are about what it does not have.

import assert from "node:assert/strict";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";

import puppeteer from "puppeteer-core";

const [chromium, base, apiKey, which, folder] = process.argv.slice(2);
const SOON = 15_000;
const DESKTOP = { width: 1400, height: 1000 };
/** The row of a domain. */
const Y = 'tr:has(a[href*="y.example"])';
const SHLINK = [3, 7, 5, null, 6, 3, 4, 9, 3, null, 6, null, null, 5, 2, 3, 5, 5, null, null];
const SHLINK_LATER = {
  "Order the links by their visits": 3,
  "Download the links of a tag as CSV": 3,
  "Copy a short link in the list, and open its QR code": 3,
  "Find the links of a tag on a phone": 2,
};

const rest = async (method, to, body) => {
  const headers = { "X-Api-Key": apiKey, "Content-Type": "application/json" };
  const answer = await fetch(`${base}/rest/v3${to}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.status < 300, `${method} ${to}: ${answer.status} ${answer.ok || (await answer.text())}`);
  return answer.status === 204 ? undefined : answer.json();
};
let pageNumber = 0;
const make = (more = {}) => rest("POST", "/short-urls", { longUrl: `https://example.com/${(pageNumber += 1)}`, findIfExists: false, ...more });
const shown = (code, domain) => rest("GET", `/short-urls/${code}${domain ? `?domain=${domain}` : ""}`);
const domain = async (name) => (await rest("GET", "/domains")).domains.data.find(({ domain }) => domain === name);
const visit = (code, headers = {}) => fetch(`${base}/${code}`, {
  redirect: "manual",
  headers: { "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", ...headers },
});

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
const context = await browser.createBrowserContext();
await context.overridePermissions(base, ["clipboard-read", "clipboard-sanitized-write"]);
const page = await context.newPage();
page.setDefaultTimeout(SOON);
await page.setViewport(DESKTOP);

let clicks = 0;
const text = (selector) => page.$eval(selector, (element) => element.innerText.trim());
const loaded = (action) => Promise.all([page.waitForNavigation(), action()]);
const click = async (selector) => {
  clicks += 1;
  await page.click(selector);
};
/** Clicks what leads to another page. */
const follow = (selector) => loaded(() => click(selector));
const named = (name, of = "a") => `${of}::-p-text(${name})`;
/** Goes to a part of the pages; those for administrators are in a menu. */
const nav = async (to) => {
  if (await page.$(`.top .menu:not([open]) a[href="${to}"]`)) await click(".top .menu summary");
  await follow(`.top nav a[href="${to}"]`);
};
const type = async (selector, value) => {
  await click(selector);
  await page.$eval(selector, (field) => field.select());
  await page.keyboard.type(value);
};
/** Types into the field that has the cursor when its page opens. */
const typeFirst = async (value) => {
  await page.waitForSelector("#long-url:focus");
  await page.keyboard.type(value);
};
/** Puts a time into a field: the browser's own field takes digits in an order of its own. */
const typeTime = async (selector, value) => {
  await click(selector);
  await page.$eval(selector, (field, value) => (field.value = value), value);
};
const choose = async (selector, value) => {
  clicks += 2;
  await page.select(selector, value);
};
const enter = () => {
  clicks += 1;
  return loaded(() => page.keyboard.press("Enter"));
};
const created = () => page.$eval("#short-url", (link) => new URL(link.href).pathname.slice(1));
const until = async (is, what) => {
  const end = Date.now() + SOON;
  for (;;) {
    if (await is()) return;
    assert.ok(Date.now() < end, what);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};

const tasks = {
  async "Make a short link from a URL and copy it"() {
    await nav("/manage/create");
    await typeFirst("https://example.com/first");
    await enter();
    await page.bringToFront();
    await click("button.copy");
    await page.waitForFunction(() => document.querySelector("button.copy").textContent === "Copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await text("#short-url"));
  },
  async "Make a link with a slug, a title and two tags"() {
    await nav("/manage/create");
    await typeFirst("https://example.com/spring");
    await click("main summary");
    await type("#slug", "spring-sale");
    await type("#title", "Spring sale");
    await type("#tags", "sale, spring");
    await enter();
    const { title, tags } = await shown("spring-sale");
    assert.deepEqual([title, tags], ["Spring sale", ["sale", "spring"]]);
  },
  async "Make a link that ends on a date and after 100 visits"() {
    await nav("/manage/create");
    await typeFirst("https://example.com/ends");
    await click("main summary");
    await typeTime("#until", "2037-01-31T18:00");
    await type("#visits", "100");
    await enter();
    const { meta } = await shown(await created());
    assert.ok(meta.validUntil.startsWith("2037-01-31") && meta.maxVisits === 100, meta);
  },
  async "Make a link that asks for a password"() {
    await nav("/manage/create");
    await typeFirst("https://example.com/secret");
    await click("main summary");
    await type("#password", "open sesame");
    await enter();
    assert.ok((await shown(await created())).hasPassword);
  },
  async "Download the QR code of a link as SVG, 600 pixels wide"({ code }) {
    await follow(named(code));
    await click("aside summary");
    await choose("#qr-format", "svg");
    await type("#qr-size", "600");
    await click("aside button[name=download]");
    await until(async () => (await readdir(folder)).some((file) => file.endsWith(".svg")), "a file is there");
    const [file] = (await readdir(folder)).filter((file) => file.endsWith(".svg"));
    const [, width] = /width="(\d+)"/.exec(await readFile(path.join(folder, file), "utf8"));
    assert.ok(Number(width) > 600, "600 pixels and the quiet zone around them");
  },
  async "Find the link whose long URL contains a word, and see its visits over time"({ code }) {
    await type("#search", "needle");
    await enter();
    await follow("tbody td.number a");
    assert.ok((await text("h1")).includes(code));
    assert.ok(await page.$("svg.chart"));
  },
  async "Change where a link leads"({ code }) {
    await follow(named(code));
    await type("#longUrl", "https://example.com/elsewhere");
    await enter();
    assert.equal((await shown(code)).longUrl, "https://example.com/elsewhere");
  },
  async "Add a rule to a link: visitors with Android go to another URL"({ code }) {
    await follow(named(code));
    await follow(".headline " + named("Redirect rules"));
    await type("#longUrl", "https://example.com/android");
    await choose("#type-new", "device");
    await type("#matchValue-new", "android");
    await enter();
    const { redirectRules } = await rest("GET", `/short-urls/${code}/redirect-rules`);
    assert.equal(redirectRules[0].conditions[0].matchValue, "android");
  },
  async "Make the second of two rules of a link the first"({ code }) {
    await follow(named(code));
    await follow(".headline " + named("Redirect rules"));
    await follow("button[value=up]");
    const { redirectRules } = await rest("GET", `/short-urls/${code}/redirect-rules`);
    assert.deepEqual(redirectRules.map(({ longUrl }) => longUrl), ["https://example.com/b", "https://example.com/a"]);
  },
  async "Delete a link, and bring it back"({ code }) {
    await follow(named(code));
    await follow("form.danger button");
    await follow(named("Undo", "button"));
    assert.equal((await shown(code)).deletedAt, null);
  },
  async "List the links with tag X that were created last month"() {
    await follow(named("campaign", "a.tag"));
    await choose("#created", "last-month");
    await follow(".filters button");
    const rows = await page.$$eval("tbody tr", (rows) => rows.length);
    assert.equal(rows, 12);
  },
  async "Find the ten most visited links of last month with tag X and move them to domain Y"() {
    await follow(named("campaign", "a.tag"));
    await choose("#visits", "last-month");
    await choose("#order", "visits-DESC");
    await choose("#count", "10");
    await follow(".filters button");
    const visits = await page.$$eval("tbody td.number", (cells) => cells.map((cell) => Number(cell.innerText)));
    assert.deepEqual(visits, [120, 110, 100, 90, 80, 70, 60, 50, 40, 30]);
    const names = await page.$$eval("tbody th a", (links) => links.map((link) => link.innerText));
    await click("#all");
    await choose("#to", "y.example");
    await follow("button[value=move]");
    for (const name of names) {
      const answer = await fetch(`${base}/${name}`, { redirect: "manual" });
      assert.equal(answer.status, 404, `${name} has moved`);
      assert.equal((await shown(name, "y.example")).domain, "y.example");
    }
    const { shortUrls } = await rest("GET", "/short-urls?domain=y.example&tags[]=campaign");
    assert.equal(shortUrls.pagination.totalItems, 10);
  },
  async "Give a tag to five links at once"() {
    const boxes = await page.$$('input[name="link"]');
    const names = await page.$$eval("tbody th a", (links) => links.slice(0, 5).map((link) => link.innerText));
    for (const box of boxes.slice(0, 5)) {
      clicks += 1;
      await box.click();
    }
    await type("#newTag", "at-once");
    await enter();
    for (const name of names) assert.ok((await shown(name)).tags.includes("at-once"));
  },
  async "Rename a tag"() {
    await nav("/manage/tags");
    await type('input[aria-label="New name of old-name"]', "new-name");
    await enter();
    const { tags } = await rest("GET", "/tags");
    assert.ok(tags.data.includes("new-name") && !tags.data.includes("old-name"));
  },
  async "See from which country most visitors of a link came in the last 30 days"() {
    await follow('tbody a[href*="code=travelled"]');
    const countries = await page.$eval(".rankings table", (table) => table.innerText);
    assert.ok(/Countries[\s\S]*Austria\s+2/.test(countries), countries);
    assert.equal(await page.$$eval(".map .level-5", (paths) => paths.length), 1);
  },
  async "See the referrers of the visits of a tag"() {
    await nav("/manage/tags");
    await follow('tbody a[href*="of=tag&tag=travels"]');
    assert.ok((await text(".rankings")).includes("news.example"));
  },
  async "See the visits to unknown codes of the last 7 days"() {
    await nav("/manage/statistics");
    await follow('.choices a[href*="of=orphans"]');
    await follow('.choices a[href*="range=7d"]');
    await follow('.choices a[href*="kind=invalid_short_url"]');
    const { visits } = await rest("GET", "/visits/orphan?type=invalid_short_url&itemsPerPage=1");
    assert.ok(visits.pagination.totalItems >= 3);
    assert.equal(await text("[data-live]"), `${visits.pagination.totalItems}`);
  },
  async "Set where unknown codes of a domain lead"() {
    await nav("/manage/domains");
    await click('tr:has(a[href*="y.example"]) summary');
    await type('tr:has(a[href*="y.example"]) input[name="invalidShortUrlRedirect"]', "https://example.com/lost");
    await enter();
    const { domains } = await rest("GET", "/domains");
    const y = domains.data.find(({ domain }) => domain === "y.example");
    assert.equal(y.redirects.invalidShortUrlRedirect, "https://example.com/lost");
  },
  async "Make 100 links from a CSV file and download the short URLs"() {
    const rows = Array.from({ length: 100 }, (_, row) => `https://example.com/csv/${row},${row}`);
    const csv = path.join(folder, "rows.csv");
    await writeFile(csv, ["longUrl,title", ...rows].join("\n"));
    await nav("/manage/bulk");
    const [picker] = await Promise.all([page.waitForFileChooser(), click("#file")]);
    clicks += 1; // "Open" of the browser's own dialog
    await picker.accept([csv]);
    await page.waitForFunction(() => document.getElementById("rows").value.includes("csv/99"));
    await follow("button[value=preview]");
    await follow("button[value=create]");
    await click("#download");
    await until(async () => (await readdir(folder)).includes("links.csv"), "a file is there");
    const lines = (await readFile(path.join(folder, "links.csv"), "utf8")).trim().split("\n");
    assert.equal(lines.length, 101);
  },
  async "Switch to dark colours, and to Chinese"() {
    await follow('footer a[href*="colours=dark"]');
    await follow("footer a[hreflang=zh]");
    assert.equal(await page.$eval("html", (html) => `${html.dataset.colours} ${html.lang}`), "dark zh");
    await loaded(() => page.click("footer a[hreflang=en]"));
  },
  async "Make a link on another domain that fills the path behind its name into its long URL"() {
    await click(".new-link summary");
    await type("#new-long-url", "https://example.com/shop?page={1}");
    await type("#new-slug", "shop");
    await choose("#new-domain", "y.example");
    await follow(".new-link button");
    await follow("tbody th a");
    await choose("#extraPath", "fill");
    await follow(".edit button");
    assert.equal((await shown("shop", "y.example")).extraPath, "fill");
  },
  async "Set where a link leads once it has expired"({ code }) {
    await follow(named(code));
    await type("#expiredUrl", "https://example.com/over");
    await enter();
    assert.equal((await shown(code)).expiredUrl, "https://example.com/over");
  },
  async "Lead half of the visitors of a link to another URL, and then all of them"({ code }) {
    await follow(named(code));
    await follow(".headline " + named("Redirect rules"));
    await type("#longUrl", "https://example.com/half");
    await choose("#type-new", "share");
    await type("#matchValue-new", "50");
    await enter();
    const rules = async () => (await rest("GET", `/short-urls/${code}/redirect-rules`)).redirectRules;
    assert.deepEqual((await rules()).map(({ conditions }) => conditions), [[{ type: "share", matchKey: null, matchValue: "50" }]]);
    await follow("button[value=win]");
    assert.deepEqual((await rules()).map(({ longUrl, conditions }) => [longUrl, conditions]), [["https://example.com/half", []]]);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, visitor) => visit(code, { "X-Forwarded-For": `192.0.2.${visitor}` })));
    assert.deepEqual([...new Set(answers.map(({ headers }) => headers.get("location")))], ["https://example.com/half"]);
  },
  async "Give a link another name"({ code }) {
    await follow(named(code));
    await type("#customSlug", "renamed-in-a-task");
    await enter();
    assert.equal(await text("h1"), "renamed-in-a-task");
    assert.ok((await shown("renamed-in-a-task")).longUrl);
  },
  async "Undo an edit"({ code }) {
    await follow(named(code));
    await type("#longUrl", "https://example.com/by-mistake");
    await enter();
    await follow("form.undo button");
    assert.notEqual((await shown(code)).longUrl, "https://example.com/by-mistake");
  },
  async "See who changed the title of a link, and what it was before"({ code }) {
    await follow(named(code));
    assert.match(await text("#history + div"), /Title: Before → After/);
  },
  async "See why a visitor from Austria gets what they get"({ code }) {
    await follow(named(code));
    await follow(".headline " + named("Explain a link"));
    await type("#country", "AT");
    await enter();
    assert.ok((await page.$$("[role=status] ol li")).length > 1);
  },
  async "Change a link at a later time, and cancel that"({ code }) {
    await follow(named(code));
    await type("#title", "Later");
    await typeTime("#scheduledFor", "2090-01-01T00:00:00");
    await follow(".edit button");
    await follow("#schedule + div button");
    assert.equal(await page.$("#schedule"), null);
  },
  async "Set what chats show of a link"({ code }) {
    await follow(named(code));
    await click(".social-preview summary");
    await type("#preview-title", "A card");
    await enter();
    assert.equal((await shown(code)).preview.title, "A card");
  },
  async "Say which Android app opens the links of a domain"() {
    const target = { namespace: "android_app", package_name: "com.example", sha256_cert_fingerprints: ["AB:CD"] };
    const statements = [{ relation: ["delegate_permission/common.handle_all_urls"], target }];
    await nav("/manage/domains");
    await click(`${Y} summary`);
    await type(`${Y} textarea[name=assetLinks]`, JSON.stringify(statements));
    await follow(`${Y} button[value=edit]`);
    assert.deepEqual((await domain("y.example")).assetLinks, statements);
  },
  async "Have capitals find the links of a domain that are in small letters"() {
    await nav("/manage/domains");
    await click(`${Y} summary`);
    await click(`${Y} input[name=ignoreCase]`);
    await follow(`${Y} button[value=edit]`);
    assert.equal((await domain("y.example")).ignoreCase, true);
  },
  async "Have one link answer every other path of a domain"() {
    await nav("/manage/domains");
    await click(`${Y} summary`);
    await click(`${Y} input[name=catchAll]`);
    await follow(`${Y} button[value=edit]`);
    assert.equal((await domain("y.example")).catchAll, true);
    await follow(`${Y} th a`);
    await click(".new-link summary");
    await type("#new-long-url", "https://example.com/caught");
    await type("#new-slug", "*");
    await enter();
    assert.equal((await shown("*", "y.example")).longUrl, "https://example.com/caught");
  },
  async "Order the links by their visits"() {
    await follow('thead a[href*="visits-DESC"]');
    const visits = await page.$$eval("tbody td.number", (cells) => cells.map((cell) => Number(cell.innerText)));
    assert.deepEqual(visits, [...visits].sort((one, other) => other - one));
  },
  async "Download the links of a tag as CSV"() {
    // An earlier task may have downloaded a file of this name.
    await rm(path.join(folder, "links.csv"), { force: true });
    await choose("#tag", "campaign");
    await follow(".filters button");
    await click('.headline a[href*="links.csv"]');
    await until(async () => (await readdir(folder)).includes("links.csv"), "a file is there");
    const lines = (await readFile(path.join(folder, "links.csv"), "utf8")).trim().split("\n");
    assert.equal(lines.length, 1 + 13);
  },
  async "Copy a short link in the list, and open its QR code"() {
    const short = await page.$eval("tbody button.copy", (button) => button.dataset.copy);
    await page.bringToFront();
    await click("tbody button.copy");
    await page.waitForFunction(() => document.querySelector("tbody button.copy").textContent === "Copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), short);
    await follow("tbody .share a");
    assert.ok((await text("#qr:target")).includes(short));
  },
  async "See before many links are made that one of their names is taken"() {
    await nav("/manage/bulk");
    await type("#rows", "url,slug\nhttps://example.com/new,taken-already");
    await follow("button[value=preview]");
    assert.match(await text("tbody"), /^2[^]*taken-already is taken already/);
  },
  async "Tell another service of new links with a webhook, and disable it"() {
    await nav("/manage/webhooks");
    await type("#url", "https://hooks.example/in");
    await click('input[value="link.created"]');
    await follow("button[value=create]");
    assert.ok((await text("#secret")).startsWith("whsec_"));
    await follow("tbody th a");
    await follow("button[value=disable]");
    const { webhooks } = await rest("GET", "/webhooks");
    assert.equal(webhooks.data[0].enabled, false);
  },
  async "Restore a link that was deleted some time ago"({ code }) {
    await follow('.headline a[href="/manage?deleted=true"]');
    await follow(`form[action="/manage/link/${code}"] button`);
    assert.equal((await shown(code)).deletedAt, null);
  },
  async "Move a link to another domain"({ code }) {
    await click(`input[name=link][value=" ${code}"]`);
    await choose("#to", "y.example");
    await follow("button[value=move]");
    assert.equal((await shown(code, "y.example")).domain, "y.example");
  },
  async "Find the links of a tag on a phone"() {
    await page.setViewport({ width: 360, height: 640 });
    try {
      await click(".fold summary");
      await choose("#tag", "campaign");
      await follow(".filters button");
      assert.equal((await page.$$("tbody tr")).length, 13);
    } finally {
      await page.setViewport(DESKTOP);
    }
  },
};

/** What tasks need before they begin. Others get a new link if they take the code of one. */
const before = {
  "Find the link whose long URL contains a word, and see its visits over time": () => make({ longUrl: "https://example.com/a-needle-in-hay" }),
  async "Make the second of two rules of a link the first"() {
    const link = await make();
    const rule = (to, language) => ({ longUrl: `https://example.com/${to}`, conditions: [{ type: "language", matchKey: null, matchValue: language }] });
    await rest("POST", `/short-urls/${link.shortCode}/redirect-rules`, { redirectRules: [rule("a", "de"), rule("b", "fr")] });
    return link;
  },
  async "See who changed the title of a link, and what it was before"() {
    const link = await make({ title: "Before" });
    await rest("PATCH", `/short-urls/${link.shortCode}`, { title: "After" });
    return link;
  },
  "See before many links are made that one of their names is taken": () => make({ customSlug: "taken-already" }),
  async "Restore a link that was deleted some time ago"() {
    const link = await make();
    await rest("DELETE", `/short-urls/${link.shortCode}`);
    return link;
  },
  "Copy a short link in the list, and open its QR code": () => make(),
  "Rename a tag": () => make({ tags: ["old-name"] }),
  async "See from which country most visitors of a link came in the last 30 days"() {
    const link = await make({ customSlug: "travelled", tags: ["travels"] });
    for (const country of ["AT", "AT", "CH"]) await visit("travelled", { "X-Country": country, Referer: "https://news.example/" });
    for (const unknown of ["nowhere1", "nowhere2", "nowhere3"]) await visit(unknown);
    await until(async () => (await shown("travelled")).visitsSummary.total === 3, "visits are counted");
    return link;
  },
};

await mkdir(folder, { recursive: true });
const session = await browser.target().createCDPSession();
await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: folder, browserContextId: context.id });
await page.goto(`${base}/_pages/sign-in`);
await page.type("#api-key", apiKey);
await loaded(() => page.click("main button"));

let failed = 0;
const counts = [];
for (const [index, [name, task]] of Object.entries(tasks).entries()) {
  if (which === "sample" && index % 4 !== 1) continue;
  try {
    const link = await (before[name] ?? (task.length > 0 ? make : undefined))?.();
    await page.goto(`${base}/manage`);
    clicks = 0;
    await task({ code: link?.shortCode });
    counts[index] = clicks;
  } catch (error) {
    failed += 1;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
await browser.close();
const there = Object.keys(tasks).map((name, task) => SHLINK[task] ?? SHLINK_LATER[name] ?? null);
console.log("| task | clicks here | in Shlink's web client |\n|---|---|---|");
Object.keys(tasks).forEach((name, task) => task in counts && console.log(`| ${name} | ${counts[task]} | ${there[task] ?? "cannot be done"} |`));
const both = there.flatMap((clicks, task) => (clicks === null || !(task in counts) ? [] : [[counts[task], clicks]]));
const sum = (column) => both.reduce((sum, pair) => sum + pair[column], 0);
console.log(`${both.length} tasks can be done in both: ${sum(0)} clicks here, ${sum(1)} there`);
if (failed) process.exit(1);
console.log("all are done");
