// Domains: the list, and where visitors go who ask for nothing that is there.

import assert from 'node:assert/strict';

import {
  byText, eventually, isLink, isRedirects, isSorted, leadsNowhere, leadsTo, problems, refused, visitAt,
} from './checks.mjs';

const NONE = { baseUrlRedirect: null, regular404Redirect: null, invalidShortUrlRedirect: null };

export const domains = async (run) => {
  await listing(run);
  await redirecting(run);
  await theDefault(run);
  await invalid(run);
};

const isList = (run, { data, defaultRedirects, ...rest }) => {
  assert.deepEqual(rest, {}, 'expected no other keys of a list of domains');
  isRedirects(defaultRedirects);
  for (const item of data) {
    assert.equal(typeof item.domain, 'string', 'domain');
    assert.equal(item.isDefault, item.domain === run.defaultDomain, `isDefault of ${item.domain}`);
    isRedirects(item.redirects);
  }
  assert.equal(data[0]?.domain, run.defaultDomain, 'expected the default domain to be the first');
  const others = data.slice(1).map(({ domain }) => domain);
  assert.equal(new Set(others).size, others.length, `expected each domain once, got ${others}`);
  isSorted(others, byText, 'domains');
};

/** What Shlink tells of a domain; whatever else the server tells is left out. */
const rowOf = async (run, name, client = run.client) => {
  const list = await client.listDomains();
  isList(run, list);
  const row = list.data.find((item) => item.domain === name);
  return row && { domain: row.domain, isDefault: row.isDefault, redirects: row.redirects };
};

const listing = async (run) => {
  const { client, fetchClient, step, id } = run;
  const domain = `listed-${id}.example`;

  await step('list domains', async () => {
    isList(run, await client.listDomains());
    isList(run, await fetchClient.listDomains());
  });
  await step('a link\'s domain is listed until the link is gone', async () => {
    assert.equal(await rowOf(run, domain), undefined);
    const link = await run.create({ longUrl: `https://example.com/${id}`, domain });
    isLink(run, link, { domain });
    const wanted = { domain, isDefault: false, redirects: NONE };
    await eventually(async () => assert.deepEqual(await rowOf(run, domain), wanted));
    await run.remove(link);
    await eventually(async () => assert.equal(await rowOf(run, domain, fetchClient), undefined));
  });
};

const redirecting = async (run) => {
  const { client, fetchClient, step, id } = run;
  const domain = `redirects-${id}.example`;
  const to = (name) => `https://example.com/${id}/${name}`;
  const asking = (path) => () => visitAt(run, domain, path);
  const [nobody, deep] = [`nobody-${id}`, `no/such-${id}/page`];

  await step('a domain without redirects tells visitors that nothing is there', () => leadsNowhere(asking(nobody)));
  await step('one redirect of a domain that no link has', async () => {
    const edit = { domain, invalidShortUrlRedirect: to('invalid') };
    const wanted = { ...NONE, invalidShortUrlRedirect: to('invalid') };
    isRedirects(await client.editDomainRedirects(edit), wanted);
    await eventually(async () => assert.deepEqual(await rowOf(run, domain), { domain, isDefault: false, redirects: wanted }));
    await leadsTo(asking(nobody), to('invalid'));
  });
  await step('redirects that are not named are kept', async () => {
    isRedirects(await fetchClient.editDomainRedirects({ domain, baseUrlRedirect: to('base') }), {
      baseUrlRedirect: to('base'), regular404Redirect: null, invalidShortUrlRedirect: to('invalid'),
    });
    isRedirects(await client.editDomainRedirects({ domain, regular404Redirect: to('404') }), {
      baseUrlRedirect: to('base'), regular404Redirect: to('404'), invalidShortUrlRedirect: to('invalid'),
    });
    await leadsTo(asking(''), to('base'));
    await leadsTo(asking(nobody), to('invalid'));
  });
  await step('a path that no link can have', async () => {
    // Where slugs have several segments, such a path is one of a link that is not there.
    const { location } = await asking(deep)();
    assert.ok([to('404'), to('invalid')].includes(location), `expected one of the domain's redirects, got ${location}`);
  });
  await step('a domain\'s own link comes first', async () => {
    await run.create({ longUrl: to('own'), customSlug: nobody, domain });
    await leadsTo(asking(nobody), to('own'));
    await run.remove({ shortCode: nobody, domain });
    await leadsTo(asking(nobody), to('invalid'));
  });
  await step('clear one redirect', async () => {
    const wanted = { baseUrlRedirect: to('base'), regular404Redirect: to('404'), invalidShortUrlRedirect: null };
    isRedirects(await client.editDomainRedirects({ domain, invalidShortUrlRedirect: null }), wanted);
    assert.deepEqual((await rowOf(run, domain)).redirects, wanted);
  });
  await step('change and clear all redirects at once', async () => {
    const wanted = { baseUrlRedirect: to('1'), regular404Redirect: to('2'), invalidShortUrlRedirect: to('3') };
    isRedirects(await client.editDomainRedirects({ domain, ...wanted }), wanted);
    await leadsTo(asking(nobody), to('3'));
    isRedirects(await client.editDomainRedirects({ domain, ...NONE }), NONE);
    await leadsNowhere(asking(nobody));
  });
};

const theDefault = async (run) => {
  const { client, step, id } = run;
  const domain = run.defaultDomain;

  await step('the default domain has redirects of its own', async () => {
    const { redirects } = await rowOf(run, domain);
    const to = `https://example.com/${id}/default`;
    try {
      isRedirects(await client.editDomainRedirects({ domain, invalidShortUrlRedirect: to }), {
        ...redirects, invalidShortUrlRedirect: to,
      });
      await leadsTo(() => visitAt(run, domain, `nobody-${id}`), to);
    } finally {
      isRedirects(await client.editDomainRedirects({ domain, ...redirects }), redirects);
    }
    assert.deepEqual((await rowOf(run, domain)).redirects, redirects);
  });
};

const invalid = async (run) => {
  const { client, fetchClient, step } = run;

  for (const [what, edit] of [
    ['no domain', {}],
    ['an empty domain', { domain: '' }],
    ['no name at all', { domain: null }],
    ['a name that is none', { domain: '???/&%$&' }],
    ['a port that is none', { domain: 'localhost:80000' }],
  ]) {
    await step(`redirects of ${what} are refused`, async () => {
      const wanted = problems.invalidData('domain');
      await refused(client.editDomainRedirects({ ...edit, baseUrlRedirect: 'https://example.com' }), wanted);
      await refused(fetchClient.editDomainRedirects(edit), wanted);
    });
  }
};
