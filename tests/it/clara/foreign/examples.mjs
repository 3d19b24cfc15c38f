// The spec's own code examples, verbatim and in their printed order, with the client's exported
// functions, which take their servers from the environment.

import { PROCESS, actions, check, data, market, tag } from './kit.mjs';

const metadata = { image: 'duh', description: 'the best', url: 'https://ppe.agent' };
const processId = PROCESS;

export async function examples(client, { alice, carol }) {
  const { result } = client;
  const board = market(client);
  await registerAgent(client, alice, board);
  const taskId = await registerTask(client, alice, carol, board);
  await sendResult(client, alice, carol, taskId, board);
  const { id: second } = await example3(client, carol.signer);
  await result({ process: processId, message: second });
  await declineTask(client, alice, carol, second, board);
  return { done: taskId, queued: second };
}

async function registerAgent({ message, result, dryrun }, alice, board) {
  const signer = alice.signer;
  const id = await message({
    process: processId,
    data: JSON.stringify(metadata),
    tags: [
      { name: 'Action', value: 'Register-Agent-Profile' },
      { name: 'RedStone-Agent-Topic', value: 'tweet' },
      { name: 'Protocol', value: 'C.L.A.R.A.' },
      { name: 'RedStone-Agent-Fee', value: '20' },
      { name: 'RedStone-Agent-Id', value: 'AO_Agent_1' },
    ],
    signer,
  });
  const registered = await result({ process: processId, message: id });
  check('an agent is registered', actions(registered), ['Registered']);
  check('the sender is answered', registered.Messages[0].Target, alice.address);
  const listed = await dryrun({
    process: processId,
    tags: [{ name: 'Action', value: 'List-Agents' }],
  });
  check('the board is JSON text', data(listed), [
    {
      id: 'AO_Agent_1',
      profileAddress: alice.address,
      topic: 'tweet',
      fee: '20',
      metadata,
      tasks: { inbox: [], outbox: [], declined: [], results: [] },
      totals: { requested: 0, assigned: 0, done: 0, rewards: '0' },
    },
  ]);
  check('nothing waits', await board.queue(), []);
}

async function example3({ message }, signer) {
  const id = await message({
    process: processId,
    data: JSON.stringify({
      prompt: 'Foo bar',
    }),
    tags: [
      { name: 'Action', value: 'Register-Task' },
      { name: 'RedStone-Agent-Topic', value: 'tweet' },
      { name: 'Protocol', value: 'C.L.A.R.A.' },
      { name: 'RedStone-Agent-Reward', value: '50' },
      { name: 'RedStone-Agent-Matching', value: 'cheapest' },
    ],
    signer,
  });
  return { id };
}

async function registerTask(client, alice, carol, board) {
  const { id } = await example3(client, carol.signer);
  const assigned = await client.result({ process: processId, message: id });
  check('a task is assigned', actions(assigned), ['Agent-Task-Assignment']);
  const [message] = assigned.Messages;
  check('the agent is notified', message.Target, alice.address);
  check('under its id', [tag(message, 'TaskId'), tag(message, 'Protocol')], [id, 'C.L.A.R.A.']);
  const { timestamp, block, ...task } = data(assigned);
  check('with the time it came', [typeof timestamp, typeof block], ['number', 'number']);
  check('with the task', task, {
    id,
    agentId: 'AO_Agent_1',
    requester: carol.address,
    reward: '20',
    matchingStrategy: 'cheapest',
    strategy: 'cheapest',
    payload: { prompt: 'Foo bar' },
    topic: 'tweet',
    contextId: id,
  });
  const { tasks } = await board.listed('AO_Agent_1');
  check('the inbox has the same task', tasks.inbox, { [id]: data(assigned) });
  check('the reward is held', await board.balance(carol), '50');
  return id;
}

async function sendResult({ message, result }, alice, carol, taskId, board) {
  const [agentId, signer] = ['AO_Agent_1', alice.signer];
  const id = await message({
    process: processId,
    data: JSON.stringify({
      result: 'whatever',
    }),
    tags: [
      { name: 'Action', value: 'Send-Result' },
      { name: 'RedStone-Agent-Id', value: agentId },
      { name: 'RedStone-Task-Id', value: taskId },
      { name: 'Protocol', value: 'C.L.A.R.A.' },
    ],
    signer,
  });
  const sent = await result({ process: processId, message: id });
  check('a result is passed on', actions(sent), ['Task-Result']);
  check('to the requester', sent.Messages[0].Target, carol.address);
  const { timestamp, block, ...done } = data(sent);
  check('with the time it was done', [typeof timestamp, typeof block], ['number', 'number']);
  check('with the result', done, {
    id: taskId,
    agentId,
    sender: alice.address,
    recipient: carol.address,
    result: { result: 'whatever' },
  });
  const { tasks, totals } = await board.listed(agentId);
  check('the inbox is empty again', tasks.inbox, []);
  check('the outbox has the result', tasks.outbox, { [taskId]: data(sent) });
  check('the agent is paid', totals, { requested: 0, assigned: 1, done: 1, rewards: '20' });
  check('its owner has the fee', await board.balance(alice), '120');
  check('the rest is free again', await board.balance(carol), '80');
}

async function declineTask({ message, result }, alice, carol, taskId, board) {
  const [agentId, signer] = ['AO_Agent_1', alice.signer];
  const id = await message({
    process: processId,
    tags: [
      { name: 'Action', value: 'Decline-Task' },
      { name: 'RedStone-Agent-Id', value: agentId },
      { name: 'RedStone-Task-Id', value: taskId },
      { name: 'Protocol', value: 'C.L.A.R.A.' },
    ],
    signer,
  });
  const declined = await result({ process: processId, message: id });
  check('a task is declined', actions(declined), ['Task-Declined', 'Task-Queued']);
  const told = declined.Messages.map((one) => one.Target);
  check('both sides are notified', told, [alice.address, carol.address]);
  const { tasks } = await board.listed(agentId);
  check('it is on the list of the agent', tasks.declined, [taskId]);
  check('and no longer in its inbox', tasks.inbox, []);
  check('it waits in the queue', await board.queue(), [taskId]);
  check('and the reward stays held', await board.balance(carol), '30');
}
