// Streams creates through grpc-js as fast as it takes them, beside streams that read no answers.
//
// usage: drive.mjs ADDRESS KEY REQUESTS SLOW PROTO
//
// Ends with a line of JSON: how many requests were sent and how many were answered with a link or a
// refusal, and the statuses with which the streams ended.

import { strict as assert } from 'node:assert';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const [address, key, requestsText, slowText, proto] = process.argv.slice(2);
const [requests, slow] = [Number(requestsText), Number(slowText)];
const definition = loader.loadSync('shortmint/links/v1/links.proto', { includeDirs: [proto], keepCase: true, oneofs: true });
const { Links } = grpc.loadPackageDefinition(definition).shortmint.links.v1;
const client = new Links(address, grpc.credentials.createInsecure());

function begin(name) {
  const metadata = new grpc.Metadata();
  metadata.set('x-api-key', key);
  const call = client.CreateLinks(metadata);
  // The status says the same.
  call.on('error', () => {});
  for (let number = 0; number < requests; number += 1) {
    call.write({ long_url: `https://example.com/${name}/${number}` });
  }
  call.end();
  return call;
}

function read(call, name) {
  return new Promise((resolve) => {
    let [links, refused] = [0, 0];
    call.on('data', ({ link }) => {
      if (!link) {
        refused += 1;
        return;
      }
      assert.equal(link.long_url, `https://example.com/${name}/${links + refused}`);
      links += 1;
    });
    call.on('status', ({ code, details }) => {
      resolve({ links, refused, status: code === grpc.status.OK ? 'OK' : `${grpc.status[code]}: ${details}` });
    });
  });
}

const unread = Array.from({ length: slow }, (_, number) => [begin(`slow${number}`), `slow${number}`]);
const fast = await read(begin('fast'), 'fast');
const ended = [fast, ...(await Promise.all(unread.map(([call, name]) => read(call, name))))];
console.log(JSON.stringify({
  sent: requests * (slow + 1),
  links: ended.reduce((sum, { links }) => sum + links, 0),
  refused: ended.reduce((sum, { refused }) => sum + refused, 0),
  statuses: [...new Set(ended.map(({ status }) => status))].sort(),
}));
client.close();
