// Unfurls a URL through the npm package unfurl.js, unmodified, and prints what it finds as JSON.
//
//     node unfurl.mjs URL

import { unfurl } from 'unfurl.js';

console.log(JSON.stringify(await unfurl(process.argv[2])));
