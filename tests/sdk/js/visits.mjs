// Visits: the overview, the five lists with their options, counts of links and tags, and deletion.

import assert from 'node:assert/strict';

import {
  eventually, inSeconds, isLink, isSummary, isVisitsPage, leadsTo, problems, refused, visit, visitAt, VISITS_ARE_COUNTED_WITHIN,
} from './checks.mjs';

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0';
const BOT = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';

export const visits = async (run) => {
  const { client, step, id } = run;
  const names = {
    tag: `${id}-visits-ñ`, domain: `visits-${id}.example`, shortCode: `visits-${id}`, deep: `visits-${id}/dëep/er`,
    longUrl: `https://example.com/visits/${id}`,
  };

  await step('create links to visit', async () => {
    const { longUrl, tag, domain, shortCode, deep } = names;
    for (const wish of [{ customSlug: shortCode }, { customSlug: deep }, { customSlug: shortCode, domain }]) {
      isLink(run, await run.create({ longUrl, tags: [tag], ...wish }), { visitsSummary: { total: 0, nonBots: 0, bots: 0 } });
    }
  });
  await step('a new link has no visits', async () => {
    const none = { currentPage: 1, pagesCount: 1, itemsInCurrentPage: 0, totalItems: 0 };
    isVisitsPage(await client.getShortUrlVisits({ shortCode: names.shortCode }), none);
    isVisitsPage(await client.getShortUrlVisits({ shortCode: names.deep }), none);
    isVisitsPage(await client.getShortUrlVisits({ shortCode: names.shortCode, domain: names.domain }), none);
  });
  await overview(run);
  await visiting(run, names);
  await listing(run, names);
  await overview(run);
  await invalid(run, names);
  await deleting(run, names);
};

const overview = ({ client, fetchClient, step }) =>
  step('the overview of visits', async () => {
    for (const each of [client, fetchClient]) {
      const { nonOrphanVisits, orphanVisits, ...rest } = await each.getVisitsOverview();
      assert.deepEqual(rest, {}, 'expected no other keys of the overview');
      isSummary(nonOrphanVisits, 'nonOrphanVisits');
      isSummary(orphanVisits, 'orphanVisits');
    }
  });

const visiting = async (run, { shortCode, deep, domain, longUrl, tag }) => {
  const { client, step, id } = run;
  await step('visit links, and what is none', async () => {
    for (const headers of [{ 'User-Agent': BROWSER, Referer: 'https://t.co' }, { 'User-Agent': BOT }]) {
      await leadsTo(() => visit(run, shortCode, { headers }), longUrl);
      await leadsTo(() => visit(run, deep, { headers }), longUrl);
      await visit(run, `nobody-${id}`, { headers });
    }
    await leadsTo(() => visitAt(run, domain, shortCode), longUrl);
    await visitAt(run, domain, `nobody-${id}`);
  });
  await step('every visit is listed, and counted for its link, its tag and its domain', () => eventually(async () => {
    const total = async (list) => (await list).pagination.totalItems;
    assert.equal(await total(client.getShortUrlVisits({ shortCode })), 2);
    assert.equal(await total(client.getShortUrlVisits({ shortCode }, { excludeBots: true })), 1);
    assert.equal(await total(client.getShortUrlVisits({ shortCode: deep })), 2);
    assert.equal(await total(client.getShortUrlVisits({ shortCode, domain })), 1);
    assert.equal(await total(client.getTagVisits(tag)), 5);
    assert.equal(await total(client.getTagVisits(tag, { domain })), 1);
    assert.equal(await total(client.getDomainVisits(domain)), 1);
    const orphans = await client.getOrphanVisits({ itemsPerPage: 100 });
    const lost = orphans.data.filter(({ visitedUrl }) => visitedUrl.endsWith(`/nobody-${id}`));
    assert.ok(lost.length >= 3, `expected three visits at least, got ${lost.length}`);
    assert.ok(lost.every(({ type }) => type === 'invalid_short_url'), 'expected codes without a link');
    const { visitsSummary } = await client.getShortUrl({ shortCode });
    assert.deepEqual(visitsSummary, { total: 2, nonBots: 1, bots: 1 });
    const { data } = await client.tagsStats();
    assert.equal(data.find((each) => each.tag === tag).visitsSummary.total, 5);
  }, VISITS_ARE_COUNTED_WITHIN));
  await step('a visit has what the visitor sent', async () => {
    const { data: [bot, person] } = await client.getShortUrlVisits({ shortCode });
    assert.deepEqual([bot.userAgent, bot.potentialBot, bot.referer], [BOT, true, '']);
    assert.deepEqual([person.userAgent, person.potentialBot, person.referer], [BROWSER, false, 'https://t.co']);
    assert.ok(person.visitedUrl.endsWith(`/${shortCode}`), person.visitedUrl);
    assert.equal(person.redirectUrl, longUrl);
  });
};

/** The five lists; `options` are those that only some of them have. */
const listsOf = ({ client, fetchClient }, { shortCode, deep, domain, tag }) => {
  const domains = [{ domain }, { domain: 'DEFAULT' }];
  const types = ['base_url', 'invalid_short_url', 'regular_404'].map((type) => ({ type }));
  return [
    ['of a link', (params) => client.getShortUrlVisits({ shortCode }, params), []],
    ['of a link, through fetch', (params) => fetchClient.getShortUrlVisits({ shortCode }, params), []],
    ['of a link on another domain', (params) => client.getShortUrlVisits({ shortCode, domain }, params), []],
    ['of a link of several segments', (params) => client.getShortUrlVisits({ shortCode: deep }, params), []],
    ['of a tag', (params) => client.getTagVisits(tag, params), domains],
    ['of a domain', (params) => client.getDomainVisits(domain, params), []],
    ['of the default domain', (params) => client.getDomainVisits('DEFAULT', params), []],
    ['without a link', (params) => client.getOrphanVisits(params), [...types, ...domains, { ...types[1], ...domains[0] }], true],
    ['of all links', (params) => client.getNonOrphanVisits(params), domains],
  ];
};

const listing = async (run, names) => {
  const [before, after] = [inSeconds(-3_600), inSeconds(3_600)];

  for (const [what, list, options, orphan = false] of listsOf(run, names)) {
    await run.step(`visits ${what}`, async () => {
      isVisitsPage(await list(), { orphan, currentPage: 1, pagesCount: 1 });
      for (const params of [{}, { startDate: before, endDate: after }, { excludeBots: false }, ...options]) {
        isVisitsPage(await list(params), { orphan, currentPage: 1 });
      }
    });
    await run.step(`visits ${what}, in pages`, async () => {
      isVisitsPage(await list({ page: 1, itemsPerPage: 1 }), { orphan, currentPage: 1, itemsPerPage: 1 });
      const all = { page: 1, itemsPerPage: 100, startDate: before, endDate: after, excludeBots: true };
      isVisitsPage(await list(all), { orphan, currentPage: 1, itemsPerPage: 100 });
      const first = await list({ itemsPerPage: 1 });
      if (first.pagination.pagesCount > 1) {
        isVisitsPage(await list({ page: 2, itemsPerPage: 1 }), { orphan, currentPage: 2, itemsInCurrentPage: 1 });
      }
    });
    await run.step(`visits ${what}, filtered`, async () => {
      isVisitsPage(await list({ startDate: after }), { orphan, itemsInCurrentPage: 0, totalItems: 0 });
      isVisitsPage(await list({ endDate: before, startDate: before }), { orphan, itemsInCurrentPage: 0, totalItems: 0 });
      const people = await list({ excludeBots: true });
      isVisitsPage(people, { orphan });
      assert.ok(people.data.every(({ potentialBot }) => !potentialBot), 'expected no bots');
      for (const { type } of options.filter((option) => option.type !== undefined)) {
        const { data } = await list({ type });
        assert.ok(data.every((each) => each.type === type), `expected visits of type ${type} only`);
      }
    });
  }
};

const invalid = async (run, { shortCode }) => {
  const { client, step, id } = run;
  const [nobody, domain] = [`nobody-${id}`, `nobody-${id}.example`];

  await step('visits of what is not there', async () => {
    await refused(client.getShortUrlVisits({ shortCode: nobody }), problems.linkNotFound(nobody));
    await refused(client.getShortUrlVisits({ shortCode, domain }), problems.linkNotFound(shortCode, domain));
    await refused(client.getTagVisits(nobody), problems.tagNotFound(nobody));
    await refused(client.getDomainVisits(domain), problems.domainNotFound(domain));
    await refused(client.deleteShortUrlVisits({ shortCode: nobody }), problems.linkNotFound(nobody));
    await refused(client.deleteShortUrlVisits({ shortCode, domain }), problems.linkNotFound(shortCode, domain));
  });
  await step('a type of orphan visits that is none is refused', () =>
    refused(client.getOrphanVisits({ type: 'lost' }), problems.invalidData('type')));
};

const deleting = async (run, { shortCode, deep, domain }) => {
  const { client, fetchClient, step } = run;
  const isResult = (result) => {
    assert.deepEqual(Object.keys(result), ['deletedVisits']);
    assert.ok(Number.isSafeInteger(result.deletedVisits) && result.deletedVisits >= 0, `deletedVisits: ${result.deletedVisits}`);
  };

  await step('delete the visits of links', async () => {
    for (const id of [{ shortCode }, { shortCode: deep }, { shortCode, domain }]) {
      isResult(await client.deleteShortUrlVisits(id));
      isResult(await fetchClient.deleteShortUrlVisits(id));
      isVisitsPage(await client.getShortUrlVisits(id), { totalItems: 0 });
    }
  });
  await step('delete the visits without a link', async () => {
    isResult(await client.deleteOrphanVisits());
    isResult(await fetchClient.deleteOrphanVisits());
    isVisitsPage(await client.getOrphanVisits(), { orphan: true });
  });
};
