// Redirect rules: all kinds of conditions, and which URL visitors are led to.

import assert from 'node:assert/strict';

import { inSeconds, isLink, leadsTo, problems, refused, visit, visitAt } from './checks.mjs';

const FIREFOX_ON_LINUX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0';
const SAFARI_ON_IOS =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 ' +
  'Mobile/15E148 Safari/604.1';
const CHROME_ON_ANDROID =
  'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36';
const CHROME_ON_WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36';

const DEVICES = ['android', 'ios', 'mobile', 'windows', 'macos', 'linux', 'chromeos', 'desktop'];
const BROWSERS = ['chrome', 'firefox', 'edge', 'safari', 'opera', 'android_browser'];

const when = (type, matchValue, matchKey = null) => ({ type, matchKey, matchValue });

/** Every kind of condition that the SDK knows, with every value of those that have few. */
const everyCondition = () => [
  ...DEVICES.map((device) => when('device', device)),
  ...BROWSERS.map((browser) => when('browser', browser)),
  ...['en', 'en-US', 'pt-BR'].map((language) => when('language', language)),
  when('query-param', 'world', 'hello'),
  when('query-param', 'ñ & =?', 'clé'),
  when('any-value-query-param', null, 'foo'),
  when('valueless-query-param', null, 'bar'),
  ...['192.168.1.10', '10.0.0.0/8', '1.2.*.4'].map((address) => when('ip-address', address)),
  ...['US', 'ES', 'JP'].map((country) => when('geolocation-country-code', country)),
  when('geolocation-city-name', 'São Paulo'),
  when('before-date', '2099-01-01T00:00:00+00:00'),
  when('after-date', '2020-01-01T00:00:00+00:00'),
];

const KINDS = 11;

export const rules = async (run) => {
  const { step, id } = run;
  const made = {
    plain: { longUrl: `https://example.com/rules/${id}`, customSlug: `rules-${id}` },
    deep: { longUrl: `https://example.com/rules/${id}/deep`, customSlug: `rules-${id}/dëep/er` },
    other: { longUrl: `https://example.com/rules/${id}/other`, customSlug: `rules-${id}`, domain: `rules-${id}.example` },
  };
  await step('create links for rules', async () => {
    for (const wish of Object.values(made)) isLink(run, await run.create(wish), { hasRedirectRules: false });
  });
  await setting(run, made);
  await invalid(run, made.plain.customSlug);
  await leading(run, made.plain);
  await deeper(run, made);
};

/** Sets rules and asserts that they are answered, and read back, in their order and with their priorities. */
const sets = async (run, { customSlug: shortCode, longUrl, domain }, redirectRules, client = run.client) => {
  const wanted = {
    defaultLongUrl: longUrl,
    redirectRules: redirectRules.map(({ longUrl: to, conditions }, at) => ({ longUrl: to, priority: at + 1, conditions })),
  };
  assert.deepEqual(await client.setShortUrlRedirectRules({ shortCode, domain }, { redirectRules }), wanted);
  assert.deepEqual(await client.getShortUrlRedirectRules({ shortCode, domain }), wanted);
  isLink(run, await client.getShortUrl({ shortCode, domain }), { longUrl, hasRedirectRules: redirectRules.length > 0 });
};

const setting = async (run, made) => {
  const { client, step, id } = run;
  const to = (name) => `https://example.com/rules/${id}/${name}`;

  await step('a new link has no rules', async () => {
    const wanted = { defaultLongUrl: made.plain.longUrl, redirectRules: [] };
    assert.deepEqual(await client.getShortUrlRedirectRules({ shortCode: made.plain.customSlug }), wanted);
  });
  await step('set a rule for each kind of condition', async () => {
    const conditions = everyCondition();
    assert.equal(new Set(conditions.map(({ type }) => type)).size, KINDS);
    await sets(run, made.plain, conditions.map((condition, at) => ({ longUrl: to(at), conditions: [condition] })));
  });
  await step('set a rule with all kinds of conditions, in place of the others', async () => {
    const kinds = new Map(everyCondition().map((condition) => [condition.type, condition]));
    await sets(run, made.plain, [{ longUrl: to('all'), conditions: [...kinds.values()] }]);
  });
  await step('set rules through fetch', async () => {
    const rule = (name, ...conditions) => ({ longUrl: to(name), conditions });
    await sets(run, made.plain, [
      rule('first', when('language', 'fr'), when('device', 'ios')), rule('second', when('query-param', '1', 'a')),
      rule('third', when('browser', 'edge')),
    ], run.fetchClient);
  });
  await step('a priority that is sent counts for nothing', async () => {
    const rule = (name, priority) => ({ longUrl: to(name), priority, conditions: [when('language', name)] });
    await sets(run, made.plain, [rule('de', 7), rule('fr', 1)]);
  });
  await step('a list shows which links have rules', async () => {
    const { data } = await client.listShortUrls({ searchTerm: `rules/${id}` });
    const withRules = data.filter(({ hasRedirectRules }) => hasRedirectRules).map(({ shortCode }) => shortCode);
    assert.deepEqual(withRules, [made.plain.customSlug]);
  });
  await step('an edit of the link keeps its rules', async () => {
    const { customSlug: shortCode } = made.plain;
    isLink(run, await client.updateShortUrl({ shortCode }, { title: 'Rules' }), { hasRedirectRules: true, title: 'Rules' });
    assert.equal((await client.getShortUrlRedirectRules({ shortCode })).redirectRules.length, 2);
  });
  await step('clear the rules', () => sets(run, made.plain, []));
};

const invalid = async (run, shortCode) => {
  const { client, fetchClient, step, id } = run;
  const longUrl = 'https://example.com';
  const set = (redirectRules, each = client) => each.setShortUrlRedirectRules({ shortCode }, { redirectRules });

  for (const [what, condition] of [
    ['a kind that is none', when('colour', 'red')],
    ['a device that is none', when('device', 'toaster')],
    ['a browser that is none', when('browser', 'netscape')],
    ['an address that is none', when('ip-address', '1.2.3')],
    ['a country that is none', when('geolocation-country-code', 'Spain')],
    ['an empty value of a query parameter', when('query-param', '', 'a')],
    ['a date that is none', when('before-date', 'tomorrow-ish')],
    ['a date that is none either', when('after-date', 'foo')],
  ]) {
    await step(`a condition with ${what} is refused`, () =>
      refused(set([{ longUrl, conditions: [condition] }]), problems.invalidData()));
  }
  await step('rules that are none are refused', async () => {
    await refused(set([{ longUrl: 'foo', conditions: [when('language', 'en')] }]), problems.invalidData());
    await refused(set([{ conditions: [when('language', 'en')] }]), problems.invalidData());
    await refused(set([{ longUrl }]), problems.invalidData());
    await refused(set('rules'), problems.invalidData());
    await refused(set(['rule'], fetchClient), problems.invalidData());
  });
  await step('refused rules change nothing', async () => {
    const { redirectRules } = await client.getShortUrlRedirectRules({ shortCode });
    assert.deepEqual(redirectRules, []);
  });
  await step('rules of a link that is not there', async () => {
    const [nobody, domain] = [`nobody-${id}`, `nobody-${id}.example`];
    await refused(client.getShortUrlRedirectRules({ shortCode: nobody }), problems.linkNotFound(nobody));
    await refused(client.getShortUrlRedirectRules({ shortCode, domain }), problems.linkNotFound(shortCode, domain));
    const nothing = { redirectRules: [] };
    await refused(client.setShortUrlRedirectRules({ shortCode: nobody }, nothing), problems.linkNotFound(nobody));
    await refused(client.setShortUrlRedirectRules({ shortCode, domain }, nothing), problems.linkNotFound(shortCode, domain));
  });
};

const leading = async (run, link) => {
  const { step, id } = run;
  const { customSlug: shortCode, longUrl } = link;
  const to = (name) => `https://example.com/to/${id}/${name}`;
  const rule = (name, ...conditions) => ({ longUrl: to(name), conditions });
  // The visitor's query is forwarded, behind whichever URL was chosen.
  const leads = (query, url, headers = {}) => leadsTo(() => visit(run, shortCode, { query, headers }), `${url}${query}`);

  await step('a query parameter chooses the URL', async () => {
    await leads('', longUrl);
    await sets(run, link, [
      rule('both', when('query-param', '1', 'a'), when('query-param', '2', 'b')), rule('one', when('query-param', '1', 'a')),
    ]);
    await leads('?a=1', to('one'));
    await leads('?a=1&b=2', to('both'));
    await leads('?a=2', longUrl);
    await leads('', longUrl);
  });
  await step('a query parameter\'s presence chooses the URL', async () => {
    await sets(run, link, [
      rule('empty', when('valueless-query-param', null, 'a')), rule('any', when('any-value-query-param', null, 'a')),
    ]);
    await leads('?a=1', to('any'));
    await leadsTo(async () => trimmed(await visit(run, shortCode, { query: '?a' })), `${to('empty')}?a`);
    await leads('?b=1', longUrl);
  });
  await step('the language chooses the URL', async () => {
    await sets(run, link, ['en-US', 'en', 'es'].map((language) => rule(language, when('language', language))));
    await leads('', to('en-US'), { 'Accept-Language': 'en-US,en;q=0.5' });
    await leads('', to('en'), { 'Accept-Language': 'en-GB' });
    await leads('', to('es'), { 'Accept-Language': 'es' });
    await leads('', longUrl, { 'Accept-Language': 'de' });
  });
  await step('the device chooses the URL', async () => {
    await sets(run, link, [
      rule('ios', when('device', 'ios')), rule('mobile', when('device', 'mobile')), rule('linux', when('device', 'linux')),
      rule('desktop', when('device', 'desktop')),
    ]);
    await leads('', to('ios'), { 'User-Agent': SAFARI_ON_IOS });
    await leads('', to('mobile'), { 'User-Agent': CHROME_ON_ANDROID });
    await leads('', to('linux'), { 'User-Agent': FIREFOX_ON_LINUX });
    await leads('', to('desktop'), { 'User-Agent': CHROME_ON_WINDOWS });
  });
  await step('the browser chooses the URL', async () => {
    await sets(run, link, [rule('firefox', when('browser', 'firefox')), rule('chrome', when('browser', 'chrome'))]);
    await leads('', to('firefox'), { 'User-Agent': FIREFOX_ON_LINUX });
    await leads('', to('chrome'), { 'User-Agent': CHROME_ON_WINDOWS });
    await leads('', longUrl, { 'User-Agent': SAFARI_ON_IOS });
  });
  await step('the date chooses the URL', async () => {
    const [before, after] = [inSeconds(-3_600), inSeconds(3_600)];
    await sets(run, link, [rule('past', when('before-date', before)), rule('now', when('after-date', before))]);
    await leads('', to('now'));
    await sets(run, link, [rule('future', when('after-date', after)), rule('still', when('before-date', after))]);
    await leads('', to('still'));
  });
  await step('without rules the link leads to its own URL again', async () => {
    await sets(run, link, []);
    await leads('?a=1', longUrl);
  });
};

/** `?a` and `?a=` say the same, and a forwarded query may be written either way. */
const trimmed = ({ location, ...answer }) => ({ ...answer, location: location?.replace(/=$/, '') ?? null });

const deeper = async (run, { plain, deep, other }) => {
  const { client, step, id } = run;
  const to = (name) => `https://example.com/deeper/${id}/${name}`;
  const rule = (name) => ({ longUrl: to(name), conditions: [when('any-value-query-param', null, 'go')] });

  await step('rules of a slug of several segments', async () => {
    await sets(run, deep, [rule('deep')]);
    await leadsTo(() => visit(run, deep.customSlug, { query: '?go=1' }), `${to('deep')}?go=1`);
  });
  await step('rules of a link on another domain', async () => {
    await sets(run, other, [rule('other')]);
    await leadsTo(() => visitAt(run, other.domain, other.customSlug, { query: '?go=1' }), `${to('other')}?go=1`);
    isLink(run, await client.getShortUrl({ shortCode: plain.customSlug }), { hasRedirectRules: false });
    await leadsTo(() => visitAt(run, run.defaultDomain, plain.customSlug, { query: '?go=1' }), `${plain.longUrl}?go=1`);
  });
};
