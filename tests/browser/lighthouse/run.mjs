// Measures the home page and the list of links with Lighthouse, on a phone and on a desktop, and
// fails below 95.
//
//   node run.mjs RESOLVER CHROMIUM
//
// RESOLVER   the path of the resolver's binary, which is started on a free port of the loopback
// CHROMIUM   the browser's path

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

const [resolver, executablePath] = process.argv.slice(2);
const LEAST = 95;
const LINKS = 120;
const CATEGORIES = ["performance", "accessibility", "best-practices"];
const KEY = crypto.randomUUID() + crypto.randomUUID();

const freePort = async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
};

const folder = await mkdtemp(path.join(tmpdir(), "shortmint-lighthouse-"));
const [port, admin] = [await freePort(), await freePort()];
const base = `http://127.0.0.1:${port}`;
const server = spawn(
  resolver,
  ["serve", "--listen", `127.0.0.1:${port}`, "--admin-listen", `127.0.0.1:${admin}`, "--database", `sqlite:${folder}/links.db`, "--public-create", "on"],
  { cwd: folder, env: { ...process.env, RESOLVER_INITIAL_API_KEY: KEY }, stdio: ["ignore", "ignore", "inherit"] },
);
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
let failed = false;
try {
  for (let attempt = 0; !(await fetch(`${base}/rest/health`).then(({ ok }) => ok, () => false)); attempt += 1) {
    if (attempt > 300) throw new Error("the resolver does not answer");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  for (let link = 0; link < LINKS; link += 1) {
    const body = JSON.stringify({ longUrl: `https://example.com/${link}`, title: `Page ${link}`, tags: [`tag-${link % 7}`] });
    await fetch(`${base}/rest/v3/short-urls`, { method: "POST", headers: { "X-Api-Key": KEY, "Content-Type": "application/json" }, body });
  }
  const page = await browser.newPage();
  await page.goto(`${base}/_pages/sign-in`);
  await page.type("#api-key", KEY);
  await Promise.all([page.waitForNavigation(), page.click("main button")]);
  console.log(`| page | device | ${CATEGORIES.join(" | ")} |\n|---|---|---|---|---|`);
  for (const to of ["/", "/manage"]) {
    for (const [device, config] of [["phone", undefined], ["desktop", desktopConfig]]) {
      const flags = { onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: "error" };
      const { lhr } = await lighthouse(base + to, flags, config, page);
      const scores = CATEGORIES.map((category) => Math.round(lhr.categories[category].score * 100));
      console.log(`| ${to} | ${device} | ${scores.join(" | ")} |`);
      const lost = Object.values(lhr.audits).filter(({ score, scoreDisplayMode }) => score !== null && score < 0.9 && scoreDisplayMode !== "informative");
      for (const { id, displayValue } of lost) console.log(`  ${id}: ${displayValue ?? ""}`);
      failed ||= scores.some((score) => score < LEAST) || lhr.runtimeError !== undefined;
    }
  }
} finally {
  await browser.close();
  server.kill();
  await once(server, "exit");
  await rm(folder, { recursive: true });
}
process.exit(failed ? 1 : 0);
