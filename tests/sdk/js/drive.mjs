// Drives a running server through Shlink's official JavaScript SDK, unmodified, and checks every answer.
//
//   node drive.mjs BASE_URL API_KEY DEFAULT_DOMAIN [API_KEY_NAME]
//
// BASE_URL        where the server listens, such as http://127.0.0.1:8080
// API_KEY         a key that may do everything
// DEFAULT_DOMAIN  the authority that the server calls its default domain
// API_KEY_NAME    the key's name; with it, links are listed by it too
//
// For a server without anybody else's visits: the orphan visits of others are deleted too. Links and tags of a run have
// names of their own and are deleted at its end; what is left are its domains, without redirects.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

import { ShlinkApiClient } from '@shlinkio/shlink-js-sdk';
import { FetchHttpClient } from '@shlinkio/shlink-js-sdk/fetch';
import { NodeHttpClient } from '@shlinkio/shlink-js-sdk/node';

import { describe, eventually, isPage, problems, refused, Steps } from './checks.mjs';
import { domains } from './domains.mjs';
import { links } from './links.mjs';
import { lists } from './lists.mjs';
import { rules } from './rules.mjs';
import { tags } from './tags.mjs';
import { visits } from './visits.mjs';

const LEAST_VERSION = [5, 1, 0];

/** What the subjects get: the clients, the server's names, and names that no other run has. */
class Run {
  #made = new Map();
  steps = new Steps();
  step = this.steps.run;
  called = new Set();
  id = `x${randomBytes(5).toString('hex')}`;

  constructor(base, apiKey, defaultDomain, apiKeyName) {
    Object.assign(this, { base: base.replace(/\/+$/, ''), apiKey, defaultDomain, apiKeyName });
    this.client = this.clientWith(new NodeHttpClient());
    this.fetchClient = this.clientWith(new FetchHttpClient(), { requestCredentials: 'include' });
  }

  /** A client that notes which of the SDK's methods are called. */
  clientWith(httpClient, options = {}, server = {}) {
    const { called } = this;
    const client = new ShlinkApiClient(httpClient, { baseUrl: this.base, apiKey: this.apiKey, ...server }, options);
    return new Proxy(client, {
      get: (target, name) => (...args) => {
        called.add(name);
        return target[name](...args);
      },
    });
  }

  /** Creates a link that is deleted at the end. */
  async create(data, client = this.client) {
    const link = await client.createShortUrl(data);
    this.#made.set(`${link.domain} ${link.shortCode}`, { shortCode: link.shortCode, domain: link.domain });
    return link;
  }

  async remove({ shortCode, domain = null }, client = this.client) {
    await client.deleteShortUrl({ shortCode, domain });
    this.#made.delete(`${domain === this.defaultDomain ? null : domain} ${shortCode}`);
  }

  async cleanUp() {
    for (const link of [...this.#made.values()]) await this.remove(link);
    const { data } = await this.client.listTags();
    const own = data.filter((tag) => tag.includes(this.id));
    await this.client.deleteTags(own);
    // A list may be a moment behind a deletion.
    await eventually(async () => isPage(await this.client.listShortUrls({ searchTerm: this.id }), { totalItems: 0 }));
  }
}

const others = async (run) => {
  const { client, step, base } = run;

  const isHealth = ({ status, version }) => {
    assert.equal(status, 'pass');
    assert.match(version, /^\d+\.\d+\.\d+$/);
    const different = version.split('.').map((part, at) => Number(part) - LEAST_VERSION[at]).find((by) => by !== 0);
    assert.ok((different ?? 0) >= 0, `expected at least version ${LEAST_VERSION.join('.')}, got ${version}`);
  };

  await step('health, of a version that has the SDK\'s features', async () => isHealth(await client.health()));
  await step('health through fetch', async () => isHealth(await run.fetchClient.health()));
  await step('health of another authority', async () => {
    const elsewhere = run.clientWith(new NodeHttpClient(), {}, { baseUrl: 'http://nowhere.invalid' });
    isHealth(await elsewhere.health({ domain: new URL(base).host }));
  });
  await step('health needs no valid key', async () => {
    isHealth(await run.clientWith(new NodeHttpClient(), {}, { apiKey: 'wrong' }).health());
  });
  await step('the hub of live visits', async () => {
    const { mercureHubUrl, token, jwtExpiration } = await client.mercureInfo();
    assert.equal(new URL(mercureHubUrl).pathname, '/.well-known/mercure');
    assert.equal(token.split('.').length, 3, 'expected a token of three parts');
    assert.ok(Date.parse(jwtExpiration) > Date.now(), `expected a time to come, got ${jwtExpiration}`);
  });
  for (const [flavour, httpClient] of [['node', new NodeHttpClient()], ['fetch', new FetchHttpClient()]]) {
    const stranger = run.clientWith(httpClient, {}, { apiKey: `wrong-${run.id}` });
    await step(`a wrong key through ${flavour}: lists, creates, deletes nothing`, async () => {
      await refused(stranger.listShortUrls(), problems.invalidApiKey());
      await refused(stranger.createShortUrl({ longUrl: 'https://example.com' }), problems.invalidApiKey());
      await refused(stranger.deleteShortUrl({ shortCode: run.id }), problems.invalidApiKey());
      await refused(stranger.getVisitsOverview(), problems.invalidApiKey());
      await refused(stranger.listDomains(), problems.invalidApiKey());
    });
  }
  await step('a call that was given up is rejected and hurts no later one', async () => {
    const given = new AbortController();
    given.abort();
    await assert.rejects(client.listTags({ signal: given.signal }), { name: 'AbortError' });
    await client.listTags();
  });
};

const main = async (run) => {
  for (const subject of [others, links, lists, tags, domains, rules, visits]) await subject(run);
  await run.step('everything that was made is deleted again', () => run.cleanUp());
  await run.step('every method of the SDK was called', () => {
    const methods = Object.getOwnPropertyNames(ShlinkApiClient.prototype).filter((name) => name !== 'constructor');
    assert.deepEqual([...run.called].sort(), methods.sort());
  });
  console.log(`all ${run.steps.held} checks hold`);
};

const [base, apiKey, defaultDomain, apiKeyName] = process.argv.slice(2);
if (defaultDomain === undefined || process.argv.length > 6) {
  console.error('usage: node drive.mjs BASE_URL API_KEY DEFAULT_DOMAIN [API_KEY_NAME]');
  process.exit(2);
}
const run = new Run(base, apiKey, defaultDomain, apiKeyName);
const fail = (error) => {
  console.error(`FAILED ${run.steps.current}\n${describe(error)}`);
  process.exit(1);
};
// The SDK's node flavour reads the body outside of its promise: an answer that is no JSON arrives here.
process.on('uncaughtException', fail);
await main(run).catch(fail);
