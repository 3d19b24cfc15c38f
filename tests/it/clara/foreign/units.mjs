// The rest of the client's functions, and the actions that only read.

import { PROCESS, actions, check, data, tag, tags, wanted } from './kit.mjs';

export async function units(client, board, people, known) {
  await pages(client, people);
  await shown(board, people);
  await dryRuns(client, board, people);
  await others(client, people, known);
}

async function pages({ results }, { alice }) {
  const ask = (more) => results({ process: PROCESS, ...more });
  const { edges: all } = await ask({ sort: 'ASC', limit: 1000 });
  const places = all.map((edge) => edge.cursor);
  check('every result has its place', new Set(places).size, places.length);
  const found = [];
  for (let from = undefined; ; ) {
    const { edges } = await ask({ sort: 'ASC', limit: 7, from });
    found.push(...edges);
    if (edges.length < 7) break;
    from = edges.at(-1).cursor;
  }
  check('page by page there are the same', found, all);
  const newest = await ask({ sort: 'DESC', limit: 3 });
  const last = newest.edges.map((edge) => edge.cursor);
  check('the newest can be first', last, places.slice(-3).reverse());
  const between = await ask({ from: places[2], to: places[5] });
  check('borders hold', between.edges.map((edge) => edge.cursor), places.slice(3, 6));
  const mine = all.flatMap((edge) => edge.node.Messages).filter((one) => one.Target === alice.address);
  const kinds = new Set(mine.map((one) => tag(one, 'Action')));
  check('an agent finds its tasks there', kinds.has('Agent-Task-Assignment'));
  const all_kinds = new Set(all.flatMap((edge) => actions(edge.node)));
  check('and its queries', all_kinds.has('Agent-Task-Query'));
  check('but no balance is public', all_kinds.has('Balance'), false);
  check('nor an error', all.some((edge) => edge.node.Error), false);
}

async function shown(board, { alice, carol }) {
  const [, listed] = await board.say(carol, { Action: 'v1.List-Agents' });
  check('the board can be asked for', actions(listed), ['List-Agents']);
  const [, dispatched] = await board.say(carol, { Action: 'Dispatch-Tasks' });
  check('the queue can be tried again', actions(dispatched), ['Tasks-Dispatched']);
  const [, dashboard] = await board.act(carol, 'Dashboard-Data', {});
  check('there is all at a glance', Object.keys(data(dashboard)), ['queue', 'agents', 'totals']);
  for (const action of ['Withdraw', 'Withdraw-All', 'Claim-Reward', 'Claim-Reward-All']) {
    const [, claimed] = await board.act(alice, action, { Quantity: '1' });
    check(`${action} is refused`, actions(claimed), ['Claim-Reward-Failed']);
  }
  const done = Object.keys((await board.listed('AO_Agent_1')).tasks.outbox)[0];
  const [, traced] = await board.act(carol, 'Task-Trace', { 'RedStone-Task-Id': done });
  check('a task can be traced', [actions(traced), data(traced).id], [['Task-Trace'], done]);
}

async function dryRuns({ dryrun }, board, { carol }) {
  const before = await board.board();
  const named = { Action: 'Register-Task', Protocol: 'C.L.A.R.A.', ...wanted('tweet', '5', 'cheapest') };
  const would = await dryrun({ process: PROCESS, tags: tags(named), data: '{}', Owner: carol.address });
  check('a dry run shows the result', actions(would), ['Agent-Task-Assignment']);
  check('and changes nothing', await board.board(), before);
  const balance = { Action: 'Balance', Protocol: 'C.L.A.R.A.' };
  const secret = await dryrun({ process: PROCESS, tags: tags(balance), Owner: carol.address });
  check('nor does it reveal secrets', secret.Error, 'Sign this message to read it');
}

async function others({ monitor, unmonitor, assign }, { alice }, { done }) {
  const signer = alice.signer;
  check('a process is watched', typeof (await monitor({ process: PROCESS, signer })), 'string');
  check('and no longer', typeof (await unmonitor({ process: PROCESS, signer })), 'string');
  check('what is known is assigned', await assign({ process: PROCESS, message: done }), done);
  const unknown = '1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY';
  const refused = await assign({ process: PROCESS, message: unknown }).catch((error) => error);
  check('what is unknown is not', refused instanceof Error && refused.message.includes('404'));
}
