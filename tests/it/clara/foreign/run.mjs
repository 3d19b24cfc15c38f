// The whole run: `node run.mjs <folder of the client>`, with MU_URL and CU_URL in the environment.

import { examples } from './examples.mjs';
import { auctions } from './auctions.mjs';
import { end, load, market, wallet } from './kit.mjs';
import { errors } from './errors.mjs';
import { tasks } from './tasks.mjs';
import { units } from './units.mjs';

// A time limit, so that the test does not wait for ever.
const PATIENCE_MS = 240_000;
setTimeout(() => {
  console.error(`not finished after ${PATIENCE_MS} ms`);
  process.exit(3);
}, PATIENCE_MS).unref();

const client = await load(process.argv[2]);
const { MU_URL, CU_URL } = process.env;
const connected = client.connect({ MODE: 'legacy', MU_URL, CU_URL });
const [alice, bob, carol] = await Promise.all([1, 2, 3].map(() => wallet(client)));
const people = { alice, bob, carol };
const board = market(connected);

const known = await examples(client, people);
await tasks(board, people, known);
await auctions(board, people);
await errors(board, people);
await units(connected, board, people, known);
end();
process.exit(0);
