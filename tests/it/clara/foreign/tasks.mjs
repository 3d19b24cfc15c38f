// Assignment of tasks: from the queue, over a restart of the hub, from agent to agent, to all of
// them, to one of them, and all paid in the end.

import { about, actions, check, data, pause, posted, tag } from './kit.mjs';

export async function tasks(board, people, known) {
  await outOfTheQueue(board, people, known);
  await unread(board, people, known);
  await cheaper(board, people);
  await inTurn(board, people);
  await toOne(board, people);
  await allDone(board, people);
}

async function outOfTheQueue(board, { alice, bob, carol }, { queued }) {
  const before = await board.board();
  const [id, registered] = await board.register(bob, 'BOB_1', 'tweet', '30');
  check('a new agent gets the waiting task', actions(registered), [
    'Registered',
    'Agent-Task-Assignment',
  ]);
  check('for its own fee', data(registered, 1).reward, '30');
  const after = await board.board();
  check('no other agent is changed', after.slice(0, 1), before);

  await pause('the hub may be killed here');
  check('the board is as it was', await board.board(), after);
  check('results are as they were', await board.result(id), registered);
  const again = await fetch(process.env.MU_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: posted.last,
  });
  check('an item posted again is the same', [again.status, (await again.json()).id], [202, id]);
  check('and is not done again', await board.result(id), registered);
  check('nor counted again', await board.board(), after);

  const [, next] = await board.act(bob, 'Load-Next-Assigned-Task', { 'RedStone-Agent-Id': 'BOB_1' });
  check('the next task is read', actions(next), ['Load-Next-Assigned-Task-Result']);
  check('and is the one that waited', data(next), data(registered, 1));
  const [, sent] = await board.act(bob, 'Send-Result', about('BOB_1', queued), { done: 2 });
  check('it is done', actions(sent), ['Task-Result']);
  check('and paid', await purses(board, [alice, bob, carol]), ['120', '130', '50']);
}

const purses = (board, all) => all.reduce(async (had, one) => [...(await had), await board.balance(one)], []);

async function unread(board, { carol }, { done, queued }) {
  const next = async () => (await board.act(carol, 'Load-Next-Task-Result', {}))[1];
  const [first, second, third] = [await next(), await next(), await next()];
  check('results are read one by one', actions(first), ['Load-Next-Task-Result-Response']);
  check('the oldest first', [data(first).id, data(second).id], [done, queued]);
  check('until there is none', actions(third), []);
}

async function cheaper(board, { alice, bob }) {
  const { tasks, totals } = await board.listed('AO_Agent_1');
  const [, updated] = await board.register(alice, 'AO_Agent_1', 'tweet', '5');
  check('a profile is changed', actions(updated), ['Registered']);
  const now = await board.listed('AO_Agent_1');
  check('with its new fee', now.fee, '5');
  check('and all its tasks', [now.tasks, now.totals], [tasks, totals]);
  await board.register(bob, 'BOB_1', 'tweet', '5');
}

async function inTurn(board, { carol }) {
  const whose = async (matching) => {
    const [, result] = await board.task(carol, 'tweet', '5', matching);
    return tag(result.Messages[0], 'Assigned-Agent-Id');
  };
  const turns = [await whose('roundRobin'), await whose('roundRobin'), await whose('roundRobin')];
  check('every agent is chosen once', new Set(turns).size, 2);
  check('and then again', turns[2], turns[0]);
  check('the least occupied is next', await whose('leastOccupied'), turns[1]);
  const [, all] = await board.task(carol, 'broadcast', '5', 'roundRobin');
  check('a broadcast is for all', actions(all), Array(2).fill('Agent-Task-Assignment'));
  const agents = all.Messages.map((one) => tag(one, 'Agent-Id')).sort();
  check('each has a copy', agents, ['AO_Agent_1', 'BOB_1']);
  check('and knows of how many', tag(all.Messages[0], 'Number-Of-Agents'), '2');
  check('all is held', await board.balance(carol), '20');
}

async function toOne(board, { bob, carol }) {
  const more = { 'Target-Agent-Id': 'BOB_1', 'Context-Id': 'a context' };
  const [id, given] = await board.task(carol, 'tweet', '5', 'cheapest', more);
  check('a task can be for one agent', data(given).agentId, 'BOB_1');
  check('and belong to something', tag(given.Messages[0], 'Context-Id'), 'a context');
  const [, declined] = await board.act(bob, 'Decline-Task', about('BOB_1', id));
  check('it can be declined', actions(declined), ['Task-Declined', 'Task-Unassigned']);
  check('which costs nothing', await board.balance(carol), '20');
}

async function allDone(board, { alice, bob, carol }) {
  let done = 0;
  for (const [by, id] of [[alice, 'AO_Agent_1'], [bob, 'BOB_1']]) {
    for (;;) {
      const [, next] = await board.act(by, 'Load-Next-Assigned-Task', { 'RedStone-Agent-Id': id });
      if (actions(next).length === 0) break;
      // The deployed processes' name of a task.
      const named = about(id, `${data(next).id}_${id}`);
      const [, sent] = await board.act(by, 'v1.Send-Result', named, { done });
      if (actions(sent)[0] !== 'Task-Result') throw new Error(JSON.stringify(sent));
      done += 1;
    }
  }
  check('all tasks are done', done, 6);
  const [one, two, three] = (await purses(board, [alice, bob, carol])).map(Number);
  check('and paid by the requester', three, 20);
  check('to the agents', one + two, 280);
  check('nothing waits any more', await board.queue(), []);
}
