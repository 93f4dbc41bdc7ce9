// Drives a running server through the npm package kutt, unmodified, and checks every answer.
//
//     node drive.mjs BASE_URL API_KEY

import assert from 'node:assert/strict';

import Kutt from 'kutt';

const [base, key] = process.argv.slice(2);
const kutt = new Kutt().set('api', `${base}/api/v2`).set('key', key);
const links = kutt.links();

assert.equal(await kutt.health().check(), true);
const user = await kutt.users().info();
assert.deepEqual([user.email, user.domains], ['initial', []]);

const made = await links.create({ target: 'example.com/npm', customurl: 'by-npm', password: 's3cret', expire_in: '1h' });
assert.deepEqual(
  [made.target, made.address, made.link, made.password, made.visit_count],
  ['http://example.com/npm', 'by-npm', `${base}/by-npm`, true, 0],
);
assert.ok(made.created_at instanceof Date && Math.abs(Date.now() - made.created_at) < 60_000);
const minted = [];
for (let number = 0; number < 3; number += 1) {
  minted.push(await links.create({ target: `https://example.com/npm/${number}` }));
}

const all = await links.list();
assert.deepEqual(new Set(all.data.map((link) => link.id)), new Set([made, ...minted].map((link) => link.id)));
// One that begins with a page, and one that begins within a page.
for (const [skip, limit] of [[2, 2], [1, 2], [3, 2]]) {
  const page = await links.list({ skip, limit });
  assert.deepEqual([page.total, page.skip, page.limit], [4, skip, limit]);
  assert.deepEqual(page.data.map((link) => link.id), all.data.slice(skip, skip + limit).map((link) => link.id));
}

const edited = await links.update(made.id, { target: 'https://example.com/edited', description: 'Edited', password: '' });
assert.deepEqual([edited.id, edited.target, edited.description], [made.id, 'https://example.com/edited', 'Edited']);
assert.equal(edited.password, false);
assert.equal(await links.remove(made.id), 'Link has been deleted successfully.');
await assert.rejects(links.update(made.id, { target: 'https://example.com/' }), (error) => error.cause.status === 404);
await assert.rejects(
  links.create({ target: 'https://example.com/', customurl: 'api/v2/links' }),
  (error) => error.cause.status === 400 && error.message.startsWith('customurl: '),
);
// The package asks for statistics with DELETE, which Kutt does not answer either. It must not delete the link.
await assert.rejects(links.stats(minted[0].id), (error) => error.cause.status === 404);
assert.equal((await links.list()).total, 3);
console.log('all checks hold');
