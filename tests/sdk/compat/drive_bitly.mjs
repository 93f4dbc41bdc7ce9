// Drives a running server through the npm package bitly, unmodified, and checks every answer.
//
//     node drive_bitly.mjs BASE_URL API_KEY
//
// The package speaks HTTPS with api-ssl.bitly.com: its connections are led to the server, in plain text.

import assert from 'node:assert/strict';
import https from 'node:https';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import { BitlyClient } from 'bitly';

const [base, key] = process.argv.slice(2);
const { host, hostname, port } = new URL(base);
const hosts = new Set();
https.globalAgent.createConnection = (options) => {
  hosts.add(options.host);
  return net.connect(port, hostname);
};
const bitly = new BitlyClient(key);
const page = 'https://example.com/bitly?a=b&c=ü';

const made = await bitly.shorten(page);
assert.deepEqual([made.long_url, made.link, made.id.split('/')[0]], [page, `http://${made.id}`, host]);
assert.deepEqual([made.archived, made.tags, made.custom_bitlinks, made.deeplinks], [false, [], [], []]);
assert.deepEqual(await bitly.shorten(page), made);
const wish = { long_url: `${page}&d`, title: 'A title', tags: ['a', 'b'], keyword: 'by-bitly' };
const named = await bitly.bitlyRequest('bitlinks', wish);
assert.deepEqual([named.id, named.title, named.tags], [`${host}/by-bitly`, 'A title', ['a', 'b']]);
const edited = await bitly.bitlyRequest(`bitlinks/${named.id}`, { title: 'Another', long_url: page }, 'PATCH');
assert.deepEqual([edited.title, edited.long_url, edited.tags], ['Another', page, ['a', 'b']]);

const browser = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';
for (const referer of ['https://news.example/today', '']) {
  const headers = { 'user-agent': browser, ...(referer && { referer }) };
  assert.equal((await fetch(named.link, { redirect: 'manual', headers })).status, 302);
}
// Visits are counted soon, not at once.
const counted = async () => (await bitly.clicks(named.link)).link_clicks[0]?.clicks;
for (const end = Date.now() + 30_000; (await counted()) !== 2 && Date.now() < end; ) await pause(50);
// A link, its id, and its name on Bitly's own domain mean the same.
for (const item of [named.link, named.id, 'bit.ly/by-bitly']) {
  assert.deepEqual(await bitly.getBitlink(item), edited);
  const { created_at, id, link, long_url } = edited;
  assert.deepEqual(await bitly.expand(item), { created_at, id, link, long_url });
  const [day, ...earlier] = (await bitly.clicksByDay(item)).link_clicks;
  assert.deepEqual([day.clicks, earlier], [2, []]);
  assert.equal((await bitly.clicks(item, 'hour', 2)).units, 2);
  const referrers = await bitly.referrers(item);
  assert.deepEqual([referrers.facet, referrers.unit, referrers.units], ['referrers', 'day', -1]);
  const counts = Object.fromEntries(referrers.metrics.map(({ value, clicks }) => [value, clicks]));
  assert.deepEqual(counts, { direct: 1, 'news.example': 1 });
  assert.deepEqual((await bitly.countries(item)).metrics, [{ value: 'unknown', clicks: 2 }]);
}
const hash = made.id.split('/')[1];
assert.equal((await bitly.info(hash)).id, made.id);

const fails = (call, message) => assert.rejects(call, { message, resource: 'bitlinks' });
await fails(bitly.shorten(made.link), 'ALREADY_A_BITLY_LINK');
await fails(bitly.shorten('nothing'), 'INVALID_ARG_LONG_URL');
await fails(bitly.expand('bit.ly/nonenone'), 'NOT_FOUND');
await fails(bitly.clicksByMinute(made.id), 'INVALID_ARG_UNIT');
await fails(new BitlyClient('wrong').shorten(page), 'FORBIDDEN');
assert.deepEqual([...hosts], ['api-ssl.bitly.com']);
console.log('all checks hold');
