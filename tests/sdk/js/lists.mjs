// Lists of links: every filter, every order, and pages.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { byText, eventually, inSeconds, isLink, isPage, isSorted, leadsTo, problems, refused, visit } from './checks.mjs';

/** Visits may be counted a while after they happened. */
const VISITS_COUNT_WITHIN = 5_000;

/** The links of this subject, by the names that the filters are expected to find. */
const wishes = ({ id, defaultDomain }) => {
  const tag = (name) => `${id}-${name}`;
  const link = (name, rest) => ({
    longUrl: `https://example.com/lists/${id}/${name}`, customSlug: `${id}-list-${name}`, ...rest,
    tags: ['list', ...(rest.tags ?? [])].map(tag),
  });
  return {
    a: link('a', { title: 'delta', tags: ['red', 'blue'] }),
    b: link('b', { title: 'alpha', tags: ['red'], maxVisits: 1 }),
    c: link('c', { title: 'charlie', tags: ['blue'], validUntil: inSeconds(-3_600) }),
    d: link('d', { tags: ['green', 'red', 'blue'], domain: `lists-${id}.example`, validUntil: inSeconds(3_600) }),
    e: link('e', { title: `bravo Needle${id}`, domain: defaultDomain, maxVisits: 100 }),
  };
};

export const lists = async (run) => {
  const wanted = wishes(run);
  await run.step('create the links that are listed', async () => {
    for (const [name, wish] of Object.entries(wanted)) {
      // The first one is older by a second at least, so that dates have an order.
      if (name === 'b') await sleep(1_100);
      isLink(run, await run.create(wish));
    }
  });
  const list = lister(run, wanted);
  await filters(run, list);
  await dates(run, list);
  await limits(run, list, wanted);
  await orders(run, list);
  await pages(run, list);
  await invalid(run);
};

/** Lists this subject's links only, and asserts which ones are found: their names, in any order. */
const lister = (run, wanted) => {
  const names = new Map(Object.entries(wanted).map(([name, { customSlug }]) => [customSlug, name]));
  const mine = [`${run.id}-list`];
  const nameOf = (link) => names.get(link.shortCode) ?? link.shortCode;
  return {
    mine,
    nameOf,
    finds: (found, params, client = run.client) =>
      // A list may be a moment behind a change.
      eventually(async () => {
        const page = await client.listShortUrls({ tags: mine, ...params });
        isPage(page, { totalItems: found.length });
        for (const link of page.data) isLink(run, link);
        assert.equal(page.data.map(nameOf).sort().join(''), found, `the links that ${JSON.stringify(params)} finds`);
        return page;
      }),
  };
};

const filters = async (run, { finds }) => {
  const { client, fetchClient, step, id } = run;
  const [red, blue, green] = ['red', 'blue', 'green'].map((name) => `${id}-${name}`);

  await step('list without any filter', async () => {
    for (const each of [client, fetchClient]) {
      const page = await each.listShortUrls();
      isPage(page, { currentPage: 1, itemsPerPage: 10 });
      assert.ok(page.pagination.totalItems >= 5, 'expected at least the links of this run');
      for (const link of page.data) isLink(run, link);
    }
  });
  await step('list by one tag', async () => {
    const page = await finds('abcde', {});
    const [link] = page.data.filter(({ domain }) => domain !== null);
    isLink(run, link, { domain: `lists-${id}.example`, tags: [`${id}-list`, red, blue, green] });
    await finds('abd', { tags: [red] });
    await finds('abd', { tags: [red] }, fetchClient);
    await finds('', { tags: [`${id}-nobody`] });
  });
  await step('list by any of some tags', async () => {
    await finds('abcd', { tags: [red, blue] });
    await finds('abcd', { tags: [red, blue], tagsMode: 'any' });
    await finds('abcde', { tags: [`${id}-list`, green], tagsMode: 'any' });
  });
  await step('list by all of some tags', async () => {
    await finds('ad', { tags: [red, blue], tagsMode: 'all' });
    await finds('d', { tags: [red, blue, green], tagsMode: 'all' }, fetchClient);
    await finds('', { tags: [red, `${id}-nobody`], tagsMode: 'all' });
  });
  await step('list without any of some tags', async () => {
    await finds('ce', { excludeTags: [red] });
    await finds('e', { excludeTags: [red, blue] });
    await finds('e', { excludeTags: [red, blue], excludeTagsMode: 'any' }, fetchClient);
  });
  await step('list without all of some tags', async () => {
    await finds('bce', { excludeTags: [red, blue], excludeTagsMode: 'all' });
    await finds('abce', { excludeTags: [red, blue, green], excludeTagsMode: 'all' });
  });
  await step('list by tags and without others', () =>
    finds('a', { tags: [red, blue], tagsMode: 'all', excludeTags: [green], excludeTagsMode: 'any' }));
  await step('list by a term: long URL, slug, title, domain, tag, in any case', async () => {
    await finds('abcde', { searchTerm: `lists/${id}`, tags: undefined });
    await finds('a', { searchTerm: `${id}-list-a` });
    await finds('a', { searchTerm: `${id}-list-a`.toUpperCase() });
    await finds('e', { searchTerm: `needle${id}`, tags: undefined });
    await finds('e', { searchTerm: `NEEDLE${id}` }, fetchClient);
    await finds('d', { searchTerm: `lists-${id}.exam`, tags: undefined });
    await finds('d', { searchTerm: `${id}-green`, tags: undefined });
    await finds('', { searchTerm: `nobody-${id}`, tags: undefined });
  });
  await step('list by a minted code', async () => {
    const { shortCode } = await run.create({ longUrl: `https://example.com/minted/${id}` });
    await eventually(async () => {
      const page = await client.listShortUrls({ searchTerm: shortCode });
      assert.ok(page.data.some((link) => link.shortCode === shortCode), `expected ${shortCode} in its list`);
    });
  });
  await step('list by domain', async () => {
    await finds('d', { domain: `lists-${id}.example` });
    await finds('abce', { domain: 'DEFAULT' });
    await finds('abce', { domain: 'DEFAULT' }, fetchClient);
    await finds('', { domain: `nobody-${id}.example` });
  });
  await step('list by the key that created', async () => {
    await finds('', { apiKeyName: `nobody-${id}` });
    if (run.apiKeyName !== undefined) await finds('abcde', { apiKeyName: run.apiKeyName });
  });
};

const dates = async (run, { finds }) => {
  const { step } = run;
  const [before, after] = [inSeconds(-3_600), inSeconds(3_600)];

  await step('list by the date of creation', async () => {
    await finds('abcde', { startDate: before });
    await finds('', { startDate: after });
    await finds('abcde', { endDate: after });
    await finds('', { endDate: before });
    await finds('abcde', { startDate: before, endDate: after }, run.fetchClient);
    await finds('', { startDate: after, endDate: before });
  });
  await step('dates of creation are within their range', async () => {
    const { data } = await finds('abcde', { orderBy: { field: 'dateCreated', dir: 'ASC' } });
    const oldest = data[0].dateCreated;
    await finds('abcde', { startDate: oldest });
    await finds('a', { endDate: oldest });
    await finds('a', { startDate: oldest, endDate: oldest });
  });
  await step('dates in another offset', async () => {
    await finds('abcde', { startDate: new Date(Date.now() - 3_600_000).toISOString().replace(/\.\d+Z/, 'Z') });
    await finds('abcde', { endDate: '2199-01-01T00:00:00+05:00' });
  });
};

const limits = async (run, { finds }, { b }) => {
  const { step } = run;

  await step('list without links past their end', async () => {
    await finds('abde', { excludePastValidUntil: true });
    await finds('abcde', { excludePastValidUntil: false });
  });
  await step('list without links that were visited as often as they may', async () => {
    await finds('abcde', { excludeMaxVisitsReached: true });
    await leadsTo(() => visit(run, b.customSlug), b.longUrl);
    await eventually(() => finds('acde', { excludeMaxVisitsReached: true }), VISITS_COUNT_WITHIN);
    await finds('abcde', { excludeMaxVisitsReached: false });
  });
  await step('list without either', () => finds('ade', { excludeMaxVisitsReached: true, excludePastValidUntil: true }));
};

const ORDERS = {
  dateCreated: [(link) => Date.parse(link.dateCreated), (a, b) => a - b],
  shortCode: [(link) => link.shortCode, byText],
  longUrl: [(link) => link.longUrl, byText],
  title: [(link) => link.title ?? '', byText],
  visits: [(link) => link.visitsSummary.total, (a, b) => a - b],
  nonBotVisits: [(link) => link.visitsSummary.nonBots, (a, b) => a - b],
};

const orders = async (run, { finds, nameOf }) => {
  const { step } = run;

  for (const [field, [valueOf, compare]] of Object.entries(ORDERS)) {
    await step(`list in the order of ${field}, both ways`, () =>
      // A visit of the step before may be counted between the two readings of a list.
      eventually(async () => {
        const up = await finds('abcde', { orderBy: { field, dir: 'ASC' } });
        isSorted(up.data.map(valueOf), compare, `${field}-ASC`);
        const down = await finds('abcde', { orderBy: { field, dir: 'DESC' } }, run.fetchClient);
        isSorted(down.data.map(valueOf), (a, b) => compare(b, a), `${field}-DESC`);
      }, VISITS_COUNT_WITHIN));
  }
  await step('list the newest first, unless told otherwise', async () => {
    for (const params of [{}, { orderBy: {} }, { orderBy: { field: 'title' } }]) {
      const { data } = await finds('abcde', params);
      assert.equal(nameOf(data.at(-1)), 'a', 'expected the oldest link at the end');
    }
  });
};

const pages = async (run, { finds, mine, nameOf }) => {
  const { client, step } = run;

  await step('list in pages', async () => {
    const orderBy = { field: 'longUrl', dir: 'ASC' };
    const seen = [];
    for (const [page, length] of [['1', 2], ['2', 2], ['3', 1]]) {
      const got = await client.listShortUrls({ tags: mine, orderBy, page, itemsPerPage: 2 });
      isPage(got, {
        currentPage: Number(page), pagesCount: 3, itemsPerPage: 2, itemsInCurrentPage: length, totalItems: 5,
      });
      seen.push(...got.data.map(nameOf));
    }
    assert.equal(seen.join(''), 'abcde', 'the links of three pages');
  });
  await step('list on one page, and all of it', async () => {
    isPage(await finds('abcde', { itemsPerPage: 5 }), { pagesCount: 1, itemsPerPage: 5 });
    isPage(await finds('abcde', { itemsPerPage: 100, page: '1' }, run.fetchClient), { pagesCount: 1, itemsPerPage: 100 });
    isPage(await finds('abcde', { itemsPerPage: -1 }), { pagesCount: 1 });
  });
  await step('an empty list has one page', () =>
    eventually(async () => {
      const got = await client.listShortUrls({ searchTerm: `nobody-${run.id}` });
      isPage(got, { currentPage: 1, pagesCount: 1, itemsPerPage: 10, itemsInCurrentPage: 0, totalItems: 0 });
    }));
};

const invalid = async (run) => {
  const { client, step } = run;

  for (const [what, params, ...names] of [
    ['an order that is none', { orderBy: { field: 'colour', dir: 'ASC' } }, 'orderBy'],
    ['a direction that is none', { orderBy: { field: 'title', dir: 'UP' } }, 'orderBy'],
    ['modes that are none', { tagsMode: 'some', excludeTagsMode: 'none' }, 'tagsMode', 'excludeTagsMode'],
    ['a page that is none', { page: '0' }, 'page'],
    ['a number per page that is none', { itemsPerPage: 0 }, 'itemsPerPage'],
  ]) {
    await step(`list with ${what} is refused`, () => refused(client.listShortUrls(params), problems.invalidData(...names)));
  }
};
