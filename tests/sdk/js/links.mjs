// Creating, reading, editing and deleting links, and what their visitors see of it.

import assert from 'node:assert/strict';

import {
  eventually, inSeconds, isLink, isPage, leadsNowhere, leadsTo, problems, refused, visit, visitAt,
} from './checks.mjs';

const PLAIN = {
  tags: [], title: null, crawlable: false, forwardQuery: true, hasRedirectRules: false, domain: null,
  meta: { validSince: null, validUntil: null, maxVisits: null },
  visitsSummary: { total: 0, nonBots: 0, bots: 0 },
};

const urlOf = (run, name) => `https://example.com/${run.id}/${name}`;

export const links = async (run) => {
  await creating(run);
  await picking(run);
  await onDomains(run);
  await limited(run);
  await finding(run);
  await invalid(run);
  await editing(run);
  await deleting(run);
};

const creating = async (run) => {
  const { client, fetchClient, step } = run;

  await step('create with nothing but a long URL', async () => {
    const longUrl = urlOf(run, 'plain');
    const link = await run.create({ longUrl });
    isLink(run, link, { longUrl, ...PLAIN });
    isLink(run, await client.getShortUrl({ shortCode: link.shortCode }), { ...link });
    await leadsTo(() => visit(run, link.shortCode), longUrl);
  });
  await step('create and get through fetch', async () => {
    const longUrl = urlOf(run, 'fetch');
    const link = await run.create({ longUrl }, fetchClient);
    isLink(run, link, { longUrl, ...PLAIN });
    isLink(run, await fetchClient.getShortUrl({ shortCode: link.shortCode }), { ...link });
    await leadsTo(() => visit(run, link.shortCode), longUrl);
  });
  await step('create with a length', async () => {
    for (const shortCodeLength of [4, 6, 7, 8]) {
      const link = await run.create({ longUrl: urlOf(run, `length-${shortCodeLength}`), shortCodeLength });
      isLink(run, link, PLAIN);
      assert.equal(link.shortCode.length, shortCodeLength, `the length of ${link.shortCode}`);
    }
  });
  await step('create with every field', async () => {
    const meta = { validSince: '2020-01-01T00:00:00+00:00', validUntil: inSeconds(86_400), maxVisits: 42 };
    const wanted = {
      longUrl: urlOf(run, 'every?a=1#part'), title: `Every field ${run.id}`, crawlable: true, forwardQuery: true,
      tags: [`${run.id}-one`, `${run.id}-two`],
    };
    const customSlug = `every-${run.id}`;
    const link = await run.create({ ...wanted, ...meta, customSlug, findIfExists: true, domain: run.defaultDomain });
    isLink(run, link, { ...PLAIN, ...wanted, meta, shortCode: customSlug });
    isLink(run, await client.getShortUrl(link), { ...PLAIN, ...wanted, meta });
  });
  await step('dates with another offset are the same instants', async () => {
    const meta = { validSince: '2020-06-01T02:00:00+02:00', validUntil: '2099-06-01T00:00:00Z' };
    isLink(run, await run.create({ longUrl: urlOf(run, 'offset'), ...meta }), { meta });
  });
  await step('texts are trimmed, tags are made uniform', async () => {
    const { id } = run;
    const link = await run.create({
      longUrl: `  ${urlOf(run, 'trimmed')} `, title: '  Trimmed ', tags: [`${id} Of Two`, `  ${id}-Äa`, `${id}-äa`],
    });
    isLink(run, link, { longUrl: urlOf(run, 'trimmed'), title: 'Trimmed', tags: [`${id}-of-two`, `${id}-äa`] });
  });
  await step('no two creates give the same code', async () => {
    const creates = Array.from({ length: 20 }, () => run.create({ longUrl: urlOf(run, 'many') }));
    const codes = (await Promise.all(creates)).map(({ shortCode }) => shortCode);
    assert.equal(new Set(codes).size, 20, codes.join(' '));
  });
};

const picking = async (run) => {
  const { client, fetchClient, step, id } = run;

  for (const [what, customSlug] of [
    ['a slug', `Slug-${id}`],
    ['a slug of several segments', `seg-${id}/two/three.3`],
    ['a slug beyond ASCII', `ñandú-${id}-тест-🦣`],
    ['a slug of several segments beyond ASCII', `ñ-${id}/日本/é`],
  ]) {
    await step(`create with ${what}`, async () => {
      const longUrl = urlOf(run, 'picked');
      isLink(run, await run.create({ longUrl, customSlug }), { ...PLAIN, longUrl, shortCode: customSlug });
      isLink(run, await client.getShortUrl({ shortCode: customSlug }), { longUrl, shortCode: customSlug });
      isLink(run, await fetchClient.getShortUrl({ shortCode: customSlug }), { longUrl, shortCode: customSlug });
      isLink(run, await client.updateShortUrl({ shortCode: customSlug }, { title: what }), { title: what });
      await leadsTo(() => visit(run, customSlug), longUrl);
    });
  }
  await step('spaces of a slug become dashes', async () => {
    isLink(run, await run.create({ longUrl: urlOf(run, 'spaces'), customSlug: `my cool ${id}` }), { shortCode: `my-cool-${id}` });
  });
  await step('a slug that was asked for before it existed is found once it does', async () => {
    const shortCode = `late-${id}`;
    await leadsNowhere(() => visit(run, shortCode));
    await refused(client.getShortUrl({ shortCode }), problems.linkNotFound(shortCode));
    await run.create({ longUrl: urlOf(run, 'late'), customSlug: shortCode });
    await leadsTo(() => visit(run, shortCode), urlOf(run, 'late'));
  });
  await step('a taken slug is refused', async () => {
    const customSlug = `Slug-${id}`;
    for (const each of [client, fetchClient]) {
      await refused(each.createShortUrl({ longUrl: urlOf(run, 'second'), customSlug }), problems.slugTaken(customSlug));
    }
    isLink(run, await client.getShortUrl({ shortCode: customSlug }), { longUrl: urlOf(run, 'picked') });
  });
};

const onDomains = async (run) => {
  const { client, step, id } = run;
  const [one, two, port] = [`one-${id}.example`, `two-${id}.example`, `port-${id}.example:8443`];
  const shortCode = `shared-${id}`;
  const at = (domain) => urlOf(run, `at-${domain ?? 'default'}`);

  await step('the same slug on the default domain and on three others', async () => {
    for (const domain of [undefined, one, two, port]) {
      const link = await run.create({ longUrl: at(domain), customSlug: shortCode, domain });
      isLink(run, link, { ...PLAIN, longUrl: at(domain), shortCode, domain: domain ?? null });
    }
  });
  await step('each domain has its own link', async () => {
    for (const domain of [undefined, one, two, port]) {
      isLink(run, await client.getShortUrl({ shortCode, domain }), { longUrl: at(domain), domain: domain ?? null });
    }
    isLink(run, await client.getShortUrl({ shortCode, domain: run.defaultDomain }), { longUrl: at(), domain: null });
    isLink(run, await run.fetchClient.getShortUrl({ shortCode, domain: port }), { longUrl: at(port), domain: port });
  });
  await step('each domain leads its visitors to its own link', async () => {
    await leadsTo(() => visitAt(run, run.defaultDomain, shortCode), at());
    for (const domain of [one, two, port]) await leadsTo(() => visitAt(run, domain, shortCode), at(domain));
  });
  await step('a minted code on a domain', async () => {
    const link = await run.create({ longUrl: urlOf(run, 'minted'), domain: one });
    isLink(run, link, { ...PLAIN, longUrl: urlOf(run, 'minted'), domain: one });
    await leadsTo(() => visitAt(run, one, link.shortCode), urlOf(run, 'minted'));
    await leadsNowhere(() => visitAt(run, two, link.shortCode));
    await refused(client.getShortUrl({ shortCode: link.shortCode, domain: two }), problems.linkNotFound(link.shortCode, two));
  });
  await step('a domain without the code gives that of the default domain, and no other\'s', async () => {
    const [fallback, only] = [`fallback-${id}`, `only-${id}`];
    await run.create({ longUrl: urlOf(run, fallback), customSlug: fallback });
    await run.create({ longUrl: urlOf(run, only), customSlug: only, domain: one });
    await leadsTo(() => visitAt(run, one, fallback), urlOf(run, fallback));
    await leadsTo(() => visitAt(run, one, only), urlOf(run, only));
    await leadsNowhere(() => visitAt(run, run.defaultDomain, only));
    await leadsNowhere(() => visitAt(run, two, only));
    await refused(client.getShortUrl({ shortCode: fallback, domain: one }), problems.linkNotFound(fallback, one));
    await refused(client.getShortUrl({ shortCode: only }), problems.linkNotFound(only));
  });
  await step('a slug that is taken on a domain is refused there', () =>
    refused(
      client.createShortUrl({ longUrl: at(one), customSlug: shortCode, domain: one }),
      problems.slugTaken(shortCode, one),
    ));
  await step('an edit on a domain changes that link only', async () => {
    const longUrl = urlOf(run, 'edited-on-one');
    isLink(run, await client.updateShortUrl({ shortCode, domain: one }, { longUrl }), { longUrl, domain: one });
    await leadsTo(() => visitAt(run, one, shortCode), longUrl);
    await leadsTo(() => visitAt(run, two, shortCode), at(two));
    isLink(run, await client.getShortUrl({ shortCode }), { longUrl: at() });
  });
  await step('a deletion on a domain leaves the others', async () => {
    await run.remove({ shortCode, domain: one });
    await refused(client.getShortUrl({ shortCode, domain: one }), problems.linkNotFound(shortCode, one));
    await leadsTo(() => visitAt(run, one, shortCode), at());
    await leadsTo(() => visitAt(run, two, shortCode), at(two));
    isLink(run, await client.getShortUrl({ shortCode, domain: two }), { longUrl: at(two) });
  });
};

const limited = async (run) => {
  const { step, id } = run;
  const asking = (shortCode) => () => visit(run, shortCode);

  await step('a link leads nowhere before it is valid', async () => {
    const { shortCode } = await run.create({ longUrl: urlOf(run, 'early'), validSince: inSeconds(3_600) });
    await leadsNowhere(asking(shortCode));
  });
  await step('a link leads nowhere after it was valid', async () => {
    const { shortCode } = await run.create({ longUrl: urlOf(run, 'over'), validUntil: inSeconds(-3_600) });
    await leadsNowhere(asking(shortCode));
  });
  await step('a link leads to its URL as often as it may, and no more', async () => {
    const longUrl = urlOf(run, 'twice');
    const { shortCode } = await run.create({ longUrl, customSlug: `twice-${id}`, maxVisits: 2 });
    const answers = [];
    for (let asked = 0; asked < 3; asked += 1) answers.push((await visit(run, shortCode)).location);
    assert.deepEqual(answers, [longUrl, longUrl, null]);
    isLink(run, await run.client.getShortUrl({ shortCode }), { longUrl, meta: { maxVisits: 2 } });
  });
  await step('the visitor\'s query is forwarded', async () => {
    const { shortCode } = await run.create({ longUrl: urlOf(run, 'query?a=1'), customSlug: `query-${id}` });
    await leadsTo(() => visit(run, shortCode, { query: '?b=2' }), urlOf(run, 'query?a=1&b=2'));
  });
};

const finding = async (run) => {
  const { client, step, id } = run;
  const wish = { longUrl: urlOf(run, 'wish'), tags: [`${id}-wish`], findIfExists: true };

  await step('who wishes for the same again gets the same link', async () => {
    const first = await run.create(wish);
    isLink(run, await run.create(wish), { shortCode: first.shortCode, dateCreated: first.dateCreated });
  });
  await step('who wishes for something else gets another link', async () => {
    const wishes = [
      wish, { ...wish, tags: [`${id}-other`] }, { ...wish, maxVisits: 3 }, { ...wish, validUntil: inSeconds(3_600) },
      { ...wish, customSlug: `wish-${id}` }, { ...wish, domain: `wish-${id}.example` },
      { ...wish, longUrl: urlOf(run, 'wish-2') },
    ];
    const codes = [];
    for (const each of wishes) {
      const { shortCode, domain } = await run.create(each);
      codes.push(`${domain} ${shortCode}`);
    }
    assert.equal(new Set(codes).size, wishes.length, codes.join(', '));
  });
  await step('a slug is found by the same wish, and refused to another', async () => {
    const customSlug = `found-${id}`;
    const made = await run.create({ ...wish, customSlug });
    isLink(run, await client.createShortUrl({ ...wish, customSlug }), { shortCode: customSlug, dateCreated: made.dateCreated });
    await refused(
      client.createShortUrl({ ...wish, customSlug, longUrl: urlOf(run, 'wish-3') }),
      problems.slugTaken(customSlug),
    );
  });
};

const invalid = async (run) => {
  const { client, fetchClient, step, id } = run;
  const longUrl = urlOf(run, 'invalid');

  for (const [what, data, ...names] of [
    ['no long URL', {}, 'longUrl'],
    ['a long URL without a scheme', { longUrl: 'example.com' }, 'longUrl'],
    ['a blank long URL', { longUrl: '  ' }, 'longUrl'],
    ['a slug that a path cannot have', { longUrl, customSlug: 'a:b?c#d' }, 'customSlug'],
    ['a domain that is none', { longUrl, domain: '???/&%$&' }, 'domain'],
    ['a port that is none', { longUrl, domain: 'localhost:80000' }, 'domain'],
    ['dates that are none', { longUrl, validSince: 'today', validUntil: 'foo' }, 'validSince', 'validUntil'],
    ['numbers that are none', { longUrl, maxVisits: 'not_a_number', shortCodeLength: 'long' }, 'maxVisits', 'shortCodeLength'],
    ['tags that are no list', { longUrl, tags: 'one' }, 'tags'],
    ['several faults at once', { longUrl: 'foo', maxVisits: 'x', customSlug: '[]' }, 'longUrl', 'maxVisits', 'customSlug'],
  ]) {
    await step(`create with ${what} is refused`, () => refused(client.createShortUrl(data), problems.invalidData(...names)));
  }
  await step('a fault through fetch is told alike', () =>
    refused(fetchClient.createShortUrl({ longUrl: 'foo' }), problems.invalidData('longUrl')));
  await step('an edit with faults is refused before its link is looked for', async () => {
    const shortCode = `nobody-${id}`;
    await refused(client.updateShortUrl({ shortCode }, { maxVisits: 'not_a_number' }), problems.invalidData('maxVisits'));
    await refused(client.updateShortUrl({ shortCode }, { longUrl: 'foo' }), problems.invalidData('longUrl'));
  });
  await step('a link that is not there: get, edit, delete', async () => {
    const shortCode = `nobody-${id}`;
    for (const each of [client, fetchClient]) {
      await refused(each.getShortUrl({ shortCode }), problems.linkNotFound(shortCode));
      await refused(each.updateShortUrl({ shortCode }, { title: 'x' }), problems.linkNotFound(shortCode));
      await refused(each.deleteShortUrl({ shortCode }), problems.linkNotFound(shortCode));
    }
  });
  await step('a link that is not there on a domain: get, edit, delete', async () => {
    const [shortCode, domain] = [`every-${id}`, `nobody-${id}.example`];
    await refused(client.getShortUrl({ shortCode, domain }), problems.linkNotFound(shortCode, domain));
    await refused(client.updateShortUrl({ shortCode, domain }, { title: 'x' }), problems.linkNotFound(shortCode, domain));
    await refused(client.deleteShortUrl({ shortCode, domain }), problems.linkNotFound(shortCode, domain));
  });
};

const editing = async (run) => {
  const { client, fetchClient, step, id } = run;
  const shortCode = `edit-${id}`;
  const created = { longUrl: urlOf(run, 'before'), title: 'Before', tags: [`${id}-before`] };
  const first = { ...PLAIN, ...created };
  const changed = {
    longUrl: urlOf(run, 'after'), title: `After ${id}`, tags: [`${id}-after`, `${id}-more`], crawlable: true, forwardQuery: false,
  };
  const meta = { validSince: '2021-01-01T00:00:00+00:00', validUntil: inSeconds(86_400), maxVisits: 1_000 };

  await step('an edit of nothing changes nothing', async () => {
    await run.create({ ...created, customSlug: shortCode });
    await leadsTo(() => visit(run, shortCode, { query: '?q=1' }), `${created.longUrl}?q=1`);
    isLink(run, await client.updateShortUrl({ shortCode }, {}), withoutVisits(first));
  });
  await step('an edit of every field', async () => {
    isLink(run, await client.updateShortUrl({ shortCode }, { ...changed, ...meta }), { ...changed, meta });
    isLink(run, await client.getShortUrl({ shortCode }), { ...changed, meta });
  });
  await step('visitors see the edit: the URL, and no forwarded query', () =>
    leadsTo(() => visit(run, shortCode, { query: '?q=1' }), changed.longUrl));
  await step('edits of one field leave the others', async () => {
    for (const [edit, seen] of [
      [{ title: 'Only the title' }], [{ crawlable: false }], [{ forwardQuery: true }], [{ tags: [`${id}-single`] }],
      [{ maxVisits: 2_000 }, { meta: { ...meta, maxVisits: 2_000 } }],
      [{ validSince: '2022-01-01T00:00:00Z' }, { meta: { validSince: '2022-01-01T00:00:00Z', maxVisits: 2_000 } }],
      [{ validUntil: '2098-01-01T00:00:00Z' }, { meta: { validUntil: '2098-01-01T00:00:00Z', maxVisits: 2_000 } }],
      [{ longUrl: urlOf(run, 'again') }],
    ]) {
      Object.assign(changed, edit.maxVisits || edit.validSince || edit.validUntil ? {} : edit);
      isLink(run, await fetchClient.updateShortUrl({ shortCode }, edit), { ...changed, ...seen });
    }
    await leadsTo(() => visit(run, shortCode, { query: '?q=2' }), `${urlOf(run, 'again')}?q=2`);
  });
  await step('an edit clears fields', async () => {
    const cleared = { title: null, tags: [], validSince: null, validUntil: null, maxVisits: null };
    const wanted = { title: null, tags: [], meta: PLAIN.meta, longUrl: changed.longUrl };
    isLink(run, await client.updateShortUrl({ shortCode }, cleared), wanted);
    isLink(run, await client.getShortUrl({ shortCode }), wanted);
  });
  await step('visitors see the edit of a limit, and its end', async () => {
    await client.updateShortUrl({ shortCode }, { validUntil: inSeconds(-60) });
    await leadsNowhere(() => visit(run, shortCode));
    await client.updateShortUrl({ shortCode }, { validUntil: null });
    await leadsTo(() => visit(run, shortCode), changed.longUrl);
  });
};

// A visit of an earlier step may be counted at any time.
const withoutVisits = ({ visitsSummary: _, ...rest }) => rest;

const deleting = async (run) => {
  const { client, fetchClient, step, id } = run;

  for (const [flavour, each, shortCode] of [
    ['', client, `delete-${id}`],
    [' through fetch', fetchClient, `delete-2-${id}`],
    [' of several segments', client, `del-${id}/ë/3`],
  ]) {
    await step(`a deleted link${flavour} is gone`, async () => {
      const made = await run.create({ longUrl: urlOf(run, 'deleted'), customSlug: shortCode });
      await leadsTo(() => visit(run, shortCode), urlOf(run, 'deleted'));
      await run.remove(made, each);
      await leadsNowhere(() => visit(run, shortCode));
      await refused(client.getShortUrl({ shortCode }), problems.linkNotFound(shortCode));
      await refused(each.deleteShortUrl({ shortCode }), problems.linkNotFound(shortCode));
      await eventually(async () => isPage(await client.listShortUrls({ searchTerm: shortCode }), { totalItems: 0 }));
    });
  }
  await step('a deleted slug can be picked again', async () => {
    const [shortCode, longUrl] = [`delete-${id}`, urlOf(run, 'reborn')];
    isLink(run, await run.create({ longUrl, customSlug: shortCode }), { ...PLAIN, longUrl });
    await leadsTo(() => visit(run, shortCode), longUrl);
  });
};
