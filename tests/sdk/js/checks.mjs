// Shared by the subjects: steps, the shapes that Shlink's API promises, its problems, and redirects
// seen as a visitor sees them.

import assert from 'node:assert/strict';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

import { ErrorType } from '@shlinkio/shlink-js-sdk/api-contract';

const LINK_KEYS = [
  'shortUrl', 'shortCode', 'longUrl', 'dateCreated', 'tags', 'meta', 'domain', 'title', 'crawlable', 'forwardQuery',
  'visitsSummary', 'hasRedirectRules',
];
const PAGE_KEYS = ['currentPage', 'pagesCount', 'itemsPerPage', 'itemsInCurrentPage', 'totalItems'];
const VISIT_KEYS = ['referer', 'date', 'userAgent', 'visitLocation', 'potentialBot', 'visitedUrl', 'redirectUrl'];
const LOCATION_KEYS = [
  'countryCode', 'countryName', 'regionName', 'cityName', 'latitude', 'longitude', 'timezone', 'isEmpty',
];
const REDIRECT_KEYS = ['baseUrlRedirect', 'regular404Redirect', 'invalidShortUrlRedirect'];
const ORPHAN_TYPES = ['base_url', 'invalid_short_url', 'regular_404'];
const ATOM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$/;
const REDIRECTS = [301, 302, 307, 308];

/** How long a visitor may be shown the state before a change, in milliseconds. */
const CHANGE_IS_SEEN_WITHIN = 1_000;
const POLL_EVERY = 50;
const STEP_TAKES_AT_MOST = 30_000;

/** The steps of a run: each is printed once it holds, and the current one is known when something breaks. */
export class Steps {
  held = 0;
  current = 'start';

  run = async (name, work) => {
    this.current = name;
    const timer = new AbortController();
    const late = sleep(STEP_TAKES_AT_MOST, undefined, { signal: timer.signal }).then(() => {
      throw new Error(`expected the step to end within ${STEP_TAKES_AT_MOST} ms`);
    });
    late.catch(() => {});
    try {
      const result = await Promise.race([work(), late]);
      this.held += 1;
      console.log(`ok ${name}`);
      return result;
    } finally {
      timer.abort();
    }
  };
}

/** What a failed step tells: an assertion's own words, or the problem that the SDK was rejected with. */
export const describe = (error) =>
  error instanceof Error ? error.stack : `the server's problem: ${inspect(error, { depth: 8 })}`;

/** The server may tell more than Shlink does, and never less. */
const hasKeys = (value, keys, what) => {
  assert.ok(value !== null && typeof value === 'object', `expected ${what} to be an object, got ${inspect(value)}`);
  const missing = keys.filter((key) => !(key in value));
  assert.deepEqual(missing, [], `expected more keys of ${what}, got ${inspect(value)}`);
};

const isCount = (value, what) =>
  assert.ok(Number.isSafeInteger(value) && value >= 0, `expected ${what} to be a count, got ${inspect(value)}`);

const isAtom = (value, what) => assert.match(value, ATOM, `expected ${what} like 2019-01-01T00:00:10+00:00, got ${value}`);

const isTextOrNull = (value, what) =>
  assert.ok(value === null || typeof value === 'string', `expected ${what} to be text or null, got ${inspect(value)}`);

export const sameInstant = (actual, wanted, what) => {
  if (wanted === null) return assert.equal(actual, null, what);
  isAtom(actual, what);
  return assert.equal(Date.parse(actual), Date.parse(wanted), `expected ${what} to be ${wanted}, got ${actual}`);
};

/** Asserts the shape of a visits summary. */
export const isSummary = (summary, what = 'visitsSummary') => {
  hasKeys(summary, ['total', 'nonBots', 'bots'], what);
  for (const key of ['total', 'nonBots', 'bots']) isCount(summary[key], `${what}.${key}`);
  assert.equal(summary.total, summary.nonBots + summary.bots, `expected ${what} to add up, got ${inspect(summary)}`);
};

/**
 * Asserts the shape of a short URL, and the values that are wanted of it. Tags are compared as a set and dates as instants:
 * the API promises neither an order nor an offset.
 */
export const isLink = (run, link, wanted = {}) => {
  hasKeys(link, LINK_KEYS, 'a short URL');
  for (const key of ['shortUrl', 'shortCode', 'longUrl', 'dateCreated']) assert.equal(typeof link[key], 'string', key);
  isAtom(link.dateCreated, 'dateCreated');
  isTextOrNull(link.domain, 'domain');
  isTextOrNull(link.title, 'title');
  assert.ok(Array.isArray(link.tags) && link.tags.every((tag) => typeof tag === 'string'), `tags: ${inspect(link.tags)}`);
  for (const key of ['crawlable', 'forwardQuery', 'hasRedirectRules']) assert.equal(typeof link[key], 'boolean', key);
  isSummary(link.visitsSummary);
  hasKeys(link.meta, ['validSince', 'validUntil', 'maxVisits'], 'meta');
  if (link.meta.validSince !== null) isAtom(link.meta.validSince, 'meta.validSince');
  if (link.meta.validUntil !== null) isAtom(link.meta.validUntil, 'meta.validUntil');
  if (link.meta.maxVisits !== null) isCount(link.meta.maxVisits, 'meta.maxVisits');
  const urls = ['http', 'https'].map((scheme) => `${scheme}://${link.domain ?? run.defaultDomain}/${link.shortCode}`);
  assert.ok(urls.includes(link.shortUrl), `expected shortUrl to be one of ${urls.join(', ')}, got ${link.shortUrl}`);
  hasValues(link, wanted);
};

const hasValues = (link, { tags, meta = {}, ...plain }) => {
  for (const [key, value] of Object.entries(plain)) {
    assert.deepEqual(link[key], value, `expected ${key} of ${link.shortCode} to be ${inspect(value)}, got ${inspect(link[key])}`);
  }
  if (tags !== undefined) assert.deepEqual([...link.tags].sort(), [...tags].sort(), `tags of ${link.shortCode}`);
  if ('validSince' in meta) sameInstant(link.meta.validSince, meta.validSince, 'meta.validSince');
  if ('validUntil' in meta) sameInstant(link.meta.validUntil, meta.validUntil, 'meta.validUntil');
  if ('maxVisits' in meta) assert.equal(link.meta.maxVisits, meta.maxVisits, 'meta.maxVisits');
};

/** Asserts the shape of a page of a list and that its numbers fit each other; `wanted` are members of the pagination. */
export const isPage = ({ data, pagination }, wanted = {}) => {
  assert.ok(Array.isArray(data), `expected data to be an array, got ${inspect(data)}`);
  hasKeys(pagination, PAGE_KEYS, 'pagination');
  for (const key of PAGE_KEYS) isCount(pagination[key], `pagination.${key}`);
  const { itemsPerPage, totalItems } = pagination;
  assert.equal(pagination.itemsInCurrentPage, data.length, 'itemsInCurrentPage');
  assert.ok(data.length <= itemsPerPage, `expected at most ${itemsPerPage} items, got ${data.length}`);
  assert.equal(pagination.pagesCount, Math.max(1, Math.ceil(totalItems / itemsPerPage)), `pagesCount: ${inspect(pagination)}`);
  for (const [key, value] of Object.entries(wanted)) assert.equal(pagination[key], value, `pagination.${key}`);
};

const isVisit = (visit, orphan) => {
  hasKeys(visit, orphan ? [...VISIT_KEYS, 'type'] : VISIT_KEYS, 'a visit');
  assert.equal(typeof visit.referer, 'string', 'referer');
  assert.equal(typeof visit.userAgent, 'string', 'userAgent');
  assert.equal(typeof visit.potentialBot, 'boolean', 'potentialBot');
  isAtom(visit.date, 'date');
  isTextOrNull(visit.visitedUrl, 'visitedUrl');
  isTextOrNull(visit.redirectUrl, 'redirectUrl');
  if (visit.visitLocation !== null) {
    hasKeys(visit.visitLocation, LOCATION_KEYS, 'visitLocation');
    assert.equal(typeof visit.visitLocation.isEmpty, 'boolean', 'visitLocation.isEmpty');
  }
  if (orphan) assert.ok(ORPHAN_TYPES.includes(visit.type), `expected a type of orphan visit, got ${visit.type}`);
};

/** Asserts the shape of a page of visits, newest first. */
export const isVisitsPage = (page, { orphan = false, ...wanted } = {}) => {
  isPage(page, wanted);
  for (const visit of page.data) isVisit(visit, orphan);
  const dates = page.data.map(({ date }) => Date.parse(date));
  isSorted(dates, (a, b) => b - a, 'visits, newest first');
};

/** Asserts the shape of a domain's three redirects, and their values where some are wanted. */
export const isRedirects = (redirects, wanted = {}) => {
  hasKeys(redirects, REDIRECT_KEYS, 'redirects');
  for (const key of REDIRECT_KEYS) isTextOrNull(redirects[key], key);
  for (const [key, value] of Object.entries(wanted)) assert.equal(redirects[key], value, key);
};

/** Asserts that no item comes before one that it must follow. */
export const isSorted = (items, compare, what) => {
  for (let at = 1; at < items.length; at += 1) {
    assert.ok(compare(items[at - 1], items[at]) <= 0, `expected ${what} to be in order, got ${inspect(items)}`);
  }
};

/** Compares texts by code point, as a database does without a language. */
export const byText = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** The problems of the API, as the SDK hands them out. An absent member is `undefined` here. */
export const problems = {
  invalidData: (...invalidElements) => ({
    type: ErrorType.INVALID_ARGUMENT, title: 'Invalid data', status: 400, detail: 'Provided data is not valid', invalidElements,
  }),
  slugTaken: (customSlug, domain) => ({
    type: ErrorType.INVALID_SLUG,
    title: 'Invalid custom slug',
    status: 400,
    detail: `Provided slug "${customSlug}" is already in use${domain === undefined ? '' : ` for domain "${domain}"`}.`,
    customSlug,
    domain,
  }),
  linkNotFound: (shortCode, domain) => ({
    type: ErrorType.INVALID_SHORTCODE,
    title: 'Short URL not found',
    status: 404,
    detail: `No URL found with short code "${shortCode}"${domain === undefined ? '' : ` for domain "${domain}"`}`,
    shortCode,
    domain,
  }),
  tagNotFound: (tag) => ({
    type: ErrorType.TAG_NOT_FOUND, title: 'Tag not found', status: 404, detail: `Tag with name "${tag}" could not be found`, tag,
  }),
  tagConflict: (oldName, newName) => ({
    type: ErrorType.TAG_CONFLICT,
    title: 'Tag conflict',
    status: 409,
    detail: `You cannot rename tag ${oldName} to ${newName}, because it already exists`,
    oldName,
    newName,
  }),
  domainNotFound: (authority) => ({
    type: ErrorType.DOMAIN_NOT_FOUND,
    title: 'Domain not found',
    status: 404,
    detail: `Domain with authority "${authority}" could not be found`,
    authority,
  }),
  invalidApiKey: () => ({
    type: ErrorType.INVALID_API_KEY,
    title: 'Invalid API key',
    status: 401,
    detail: 'Provided API key does not exist or is invalid.',
  }),
};

/**
 * Asserts that a call is rejected with this problem. Other members may be there too; the names of elements come in any
 * order, and where none is wanted any will do.
 */
export const refused = async (call, { invalidElements, ...wanted }) => {
  const problem = await call.then(
    (answer) => assert.fail(`expected a refusal of type ${wanted.type}, got the answer ${inspect(answer)}`),
    (error) => error,
  );
  if (problem instanceof Error) throw problem;
  for (const [key, value] of Object.entries(wanted)) {
    assert.deepEqual(problem[key], value, `expected ${key} to be ${inspect(value)}, got ${inspect(problem)}`);
  }
  if (invalidElements === undefined) return;
  assert.ok(Array.isArray(problem.invalidElements), `expected invalidElements, got ${inspect(problem)}`);
  if (invalidElements.length === 0) return;
  assert.deepEqual([...problem.invalidElements].sort(), [...invalidElements].sort(), 'invalidElements');
};

/** Visits are stored within a second, and added to links and tags every two. */
export const VISITS_ARE_COUNTED_WITHIN = 15_000;

/** Asks again until the check holds, and fails as the last check did once the time is over. */
export const eventually = async (check, within = CHANGE_IS_SEEN_WITHIN) => {
  const deadline = performance.now() + within;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() >= deadline) throw error;
      await sleep(POLL_EVERY);
    }
  }
};

const pathOf = (shortCode) => `/${shortCode.split('/').map(encodeURIComponent).join('/')}`;

/** What a visitor of the default domain gets: the status and the Location. */
export const visit = async (run, shortCode, { query = '', headers = {} } = {}) => {
  const answer = await fetch(`${run.base}${pathOf(shortCode)}${query}`, { redirect: 'manual', headers });
  await answer.arrayBuffer();
  return { status: answer.status, location: answer.headers.get('location') };
};

/** What a visitor of another domain gets: `fetch` would not send its name as Host. */
export const visitAt = (run, host, shortCode, { query = '' } = {}) =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(run.base);
    const path = `${pathOf(shortCode)}${query}`;
    const request = http.get({ hostname, port, path, headers: { Host: host } }, (answer) => {
      answer.on('error', reject).on('end', () => {
        resolve({ status: answer.statusCode, location: answer.headers.location ?? null });
      });
      answer.resume();
    });
    request.on('error', reject);
  });

/** Asserts that a visitor is led to the URL, soon. */
export const leadsTo = (ask, location) =>
  eventually(async () => {
    const answer = await ask();
    assert.ok(REDIRECTS.includes(answer.status), `expected a redirect to ${location}, got ${inspect(answer)}`);
    assert.equal(answer.location, location, `expected a redirect to ${location}, got ${inspect(answer)}`);
  });

/** Asserts that a visitor finds nothing, soon. */
export const leadsNowhere = (ask) =>
  eventually(async () => {
    const answer = await ask();
    assert.equal(answer.status, 404, `expected 404, got ${inspect(answer)}`);
  });

/** The time now and so many seconds later, as the API writes it. */
export const inSeconds = (seconds) =>
  new Date(Date.now() + seconds * 1_000).toISOString().replace(/\.\d+Z$/, '+00:00');
