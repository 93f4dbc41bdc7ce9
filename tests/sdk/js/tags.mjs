// Tags: names, numbers, renaming, deletion.

import assert from 'node:assert/strict';

import { byText, eventually, isLink, isPage, isSorted, isSummary, problems, refused } from './checks.mjs';

export const tags = async (run) => {
  const { step, id } = run;
  const names = { a: `${id}-tag-a`, b: `${id}-tag-b`, far: `${id}-tag-ñ-日本` };
  const shortCode = `tags-${id}`;

  await step('create links with tags', async () => {
    const longUrl = `https://example.com/tags/${id}`;
    isLink(run, await run.create({ longUrl, customSlug: shortCode, tags: Object.values(names) }), { tags: Object.values(names) });
    await run.create({ longUrl, tags: [names.a] });
  });
  await listing(run, names);
  await renaming(run, names, shortCode);
  await deleting(run, names, shortCode);
};

const listing = async (run, names) => {
  const { client, fetchClient, step } = run;

  await step('list tags by name', () =>
    eventually(async () => {
      for (const each of [client, fetchClient]) {
        const page = await each.listTags();
        isPage(page, { currentPage: 1, pagesCount: 1 });
        const own = page.data.filter((tag) => Object.values(names).includes(tag));
        assert.equal(own.length, 3, `expected each tag once, got ${own}`);
        isSorted(own.filter((tag) => tag !== names.far), byText, 'tags');
      }
    }));
  await step('numbers of tags', () =>
    eventually(async () => {
      for (const each of [client, fetchClient]) {
        const page = await each.tagsStats();
        isPage(page, { currentPage: 1, pagesCount: 1 });
        for (const stats of page.data) {
          assert.deepEqual(Object.keys(stats).sort(), ['shortUrlsCount', 'tag', 'visitsSummary']);
          isSummary(stats.visitsSummary, `the visits of ${stats.tag}`);
        }
        const counts = new Map(page.data.map(({ tag, shortUrlsCount }) => [tag, shortUrlsCount]));
        assert.deepEqual(Object.values(names).map((name) => counts.get(name)), [2, 1, 1]);
      }
    }));
};

const renaming = async (run, names, shortCode) => {
  const { client, fetchClient, step, id } = run;

  await step('rename a tag', async () => {
    const renaming = { oldName: names.b, newName: `${id}-tag-renamed` };
    assert.deepEqual(await client.editTag(renaming), renaming);
    names.b = renaming.newName;
    await eventually(async () => {
      isLink(run, await client.getShortUrl({ shortCode }), { tags: Object.values(names) });
      const { data } = await client.listTags();
      assert.ok(data.includes(renaming.newName) && !data.includes(renaming.oldName), 'expected the new name only');
    });
  });
  await step('rename a tag beyond ASCII through fetch', async () => {
    const renaming = { oldName: names.far, newName: `${id}-tag-ü-한국` };
    assert.deepEqual(await fetchClient.editTag(renaming), renaming);
    names.far = renaming.newName;
    await eventually(async () => isLink(run, await client.getShortUrl({ shortCode }), { tags: Object.values(names) }));
  });
  await step('rename a tag to its own name', async () => {
    const renaming = { oldName: names.a, newName: names.a };
    assert.deepEqual(await client.editTag(renaming), renaming);
    isLink(run, await client.getShortUrl({ shortCode }), { tags: Object.values(names) });
  });
  await step('two tags cannot have one name', async () => {
    for (const each of [client, fetchClient]) {
      await refused(each.editTag({ oldName: names.a, newName: names.b }), problems.tagConflict(names.a, names.b));
    }
    isLink(run, await client.getShortUrl({ shortCode }), { tags: Object.values(names) });
  });
  await step('a tag that is not there cannot be renamed', () =>
    refused(client.editTag({ oldName: `${id}-nobody`, newName: `${id}-x` }), problems.tagNotFound(`${id}-nobody`)));
  await step('a renaming needs two names', async () => {
    await refused(client.editTag({ oldName: names.a }), problems.invalidData('newName'));
    await refused(client.editTag({ newName: names.a }), problems.invalidData('oldName'));
    await refused(client.editTag({}), problems.invalidData('oldName', 'newName'));
  });
};

const deleting = async (run, names, shortCode) => {
  const { client, fetchClient, step, id } = run;

  await step('an unused tag stays', async () => {
    await client.updateShortUrl({ shortCode }, { tags: [names.a, names.far] });
    await eventually(async () => {
      const { data } = await client.tagsStats();
      assert.equal(data.find(({ tag }) => tag === names.b)?.shortUrlsCount, 0, `the number of links with ${names.b}`);
    });
  });
  await step('delete tags, also such as are not there', async () => {
    const deleted = [names.b, names.far, `${id}-nobody`];
    assert.deepEqual(await client.deleteTags(deleted), { tags: deleted });
    await eventually(async () => {
      isLink(run, await client.getShortUrl({ shortCode }), { tags: [names.a] });
      const { data } = await client.listTags();
      assert.ok(data.includes(names.a) && !data.some((tag) => deleted.includes(tag)), `expected no deleted tag, got ${data}`);
    });
  });
  await step('delete a tag through fetch, and none', async () => {
    assert.deepEqual(await fetchClient.deleteTags([names.a]), { tags: [names.a] });
    assert.deepEqual(await fetchClient.deleteTags([]), { tags: [] });
    await eventually(async () => isLink(run, await client.getShortUrl({ shortCode }), { tags: [] }));
  });
};
