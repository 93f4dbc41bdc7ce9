// Drives n8n's YOURLS and Bitly nodes, unmodified, through n8n's own HTTP requests. They are 840 MB, so it is run by
// hand, beside them:
//
//     npm install --ignore-scripts n8n-nodes-base@2.41.1 n8n-core@2.41.0
//     resolver serve --compat yourls,bitly --public-url BASE_URL
//     node n8n.cjs BASE_URL ADMIN_KEY OWN_KEY
//
// OWN_KEY is one with `--scopes create,read,visits --own-links-only`. The server has no links yet.

require('reflect-metadata');
const assert = require('node:assert/strict');
const https = require('node:https');
const net = require('node:net');

const { Bitly } = require('n8n-nodes-base/dist/nodes/Bitly/Bitly.node.js');
const { Yourls } = require('n8n-nodes-base/dist/nodes/Yourls/Yourls.node.js');
const utils = 'n8n-core/dist/execution-engine/node-execution-context/utils';
const { constructExecutionMetaData } = require(`${utils}/construct-execution-metadata.js`);
const { getRequestHelperFunctions } = require(`${utils}/request-helper-functions.js`);
const { returnJsonArray } = require(`${utils}/return-json-array.js`);

const [base, admin, own] = process.argv.slice(2);
const { host, hostname, port } = new URL(base);

/** Returns what a node executes with. */
function context(credentials, parameters, items = 1) {
  const node = { name: 'node', type: 'test', typeVersion: 1, id: '1', position: [0, 0], parameters: {} };
  return {
    getInputData: () => Array.from({ length: items }, () => ({ json: {} })),
    getNode: () => node,
    getCredentials: async () => credentials,
    getNodeParameter: (name, item) => {
      const value = parameters[name];
      return typeof value === 'function' ? value(item) : value;
    },
    continueOnFail: () => false,
    helpers: { ...getRequestHelperFunctions({ id: '1' }, node, {}), returnJsonArray, constructExecutionMetaData },
  };
}

async function execute(node, ...rest) {
  const [items] = await node.execute.call(context(...rest));
  return items.map((item) => item.json);
}

async function yourls() {
  const call = (parameters, signature = own, items = 1) =>
    execute(new Yourls(), { url: base, signature }, { resource: 'url', additionalFields: {}, ...parameters }, items);
  const url = 'https://example.com/n8n?a=1&b=ü';
  const [made] = await call({ operation: 'shorten', url, additionalFields: { keyword: 'by-n8n', title: 'A title' } });
  assert.deepEqual([made.status, made.shorturl, made.title], ['success', `${base}/by-n8n`, 'A title']);
  for (const shortUrl of [made.shorturl, 'by-n8n']) {
    const [found] = await call({ operation: 'expand', shortUrl });
    assert.deepEqual([found.longurl, found.title], [url, 'A title']);
  }
  const [stats] = await call({ operation: 'stats', shortUrl: made.shorturl });
  assert.deepEqual([stats.clicks, stats.url], ['0', url]);
  const many = await call({ operation: 'shorten', url: (item) => `https://example.com/n8n/${item}` }, own, 3);
  assert.equal(new Set(many.map((link) => link.shorturl)).size, 3);

  for (const [parameters, httpCode, text, key] of [
    [{ operation: 'shorten', url }, '400', 'already exists in database (short URL: '],
    [{ operation: 'shorten', url: `${url}x`, additionalFields: { keyword: 'by-n8n' } }, '400', 'by-n8n already exists'],
    [{ operation: 'shorten', url: '' }, '400', 'Missing or malformed URL'],
    [{ operation: 'expand', shortUrl: 'none' }, '404', 'short URL not found'],
    [{ operation: 'stats', shortUrl: 'none' }, '404', 'short URL not found'],
    [{ operation: 'stats', shortUrl: 'by-n8n' }, '403', 'part of an address', admin],
    [{ operation: 'stats', shortUrl: 'by-n8n' }, '403', 'API key does not exist', 'wrong'],
  ]) {
    await assert.rejects(call(parameters, key), (error) => error.httpCode === httpCode && error.description.includes(text));
  }
}

async function bitly() {
  // The node has a fixed address. Its connections are led to the server, in plain text.
  const connect = https.Agent.prototype.createConnection;
  https.Agent.prototype.createConnection = function (options, ...rest) {
    return options.host === 'api-ssl.bitly.com' ? net.connect(port, hostname) : connect.call(this, options, ...rest);
  };
  const always = { authentication: 'accessToken', resource: 'link', deeplink: {} };
  const call = async (parameters) => (await execute(new Bitly(), { accessToken: admin }, { ...always, ...parameters }))[0];
  const { getGroups } = new Bitly().methods.loadOptions;
  const [group] = await getGroups.call(context({ accessToken: admin }, always));
  const wish = { title: 'A title', domain: 'bit.ly', tags: ['a'], group: group.value };
  const made = await call({ operation: 'create', longUrl: 'https://example.com/bitly', additionalFields: wish });
  assert.deepEqual([made.link, made.id.split('/')[0], made.tags], [`http://${made.id}`, host, ['a']]);
  const updateFields = { title: 'Another', longUrl: 'https://example.com/bitly/2', archived: false, tags: ['b'] };
  const edited = await call({ operation: 'update', id: made.id, updateFields });
  assert.deepEqual([edited.title, edited.long_url, edited.tags], ['Another', updateFields.longUrl, ['b']]);
  assert.deepEqual(await call({ operation: 'get', id: made.id }), edited);
  const archive = call({ operation: 'update', id: made.id, updateFields: { archived: true } });
  await assert.rejects(archive, { httpCode: '400', description: 'INVALID_ARG_ARCHIVED' });
  await assert.rejects(call({ operation: 'get', id: 'bit.ly/none' }), { httpCode: '404', description: 'NOT_FOUND' });
}

yourls().then(bitly).then(
  () => console.log('all checks hold'),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
