// `query`: a sealed auction, whose outcome is read at once.

import { about, actions, check, data, wanted } from './kit.mjs';

export async function auctions(board, people) {
  const id = await bidding(board, people);
  await afterwards(board, people, id);
  await nobody(board, people);
}

const offer = (board, by, agent, id, fee) =>
  board.act(by, 'Submit-Offer', { ...about(agent, id), 'RedStone-Agent-Fee': fee });

async function bidding(board, { alice, bob, carol }) {
  const task = wanted('tweet', '8', 'query');
  const id = await board.post(carol, 'Register-Task', task, { prompt: 'how much?' });
  const named = { 'RedStone-Agent-Id': 'BOB_1' };
  const [, asked] = await board.act(bob, 'Load-Next-Query', named);
  check('a query is read', actions(asked), ['Load-Next-Query-Result']);
  check('it has the payload', data(asked).payload, { prompt: 'how much?' });
  check('and the maximum reward', [data(asked).id, data(asked).maxReward], [id, '8']);
  const [, high] = await offer(board, alice, 'AO_Agent_1', id, '9');
  check('a higher offer is refused', high.Error, 'Offer 9 exceeds reward 8');
  const [, first] = await offer(board, alice, 'AO_Agent_1', id, '7');
  check('an offer counts', actions(first), ['Offer-Received']);
  const [, twice] = await offer(board, alice, 'AO_Agent_1', id, '6');
  check('and is binding', twice.Error, `Already offered for task ${id}`);
  await offer(board, bob, 'BOB_1', id, '6');
  const closed = await board.result(id);
  check('the lowest offer wins', [data(closed).agentId, data(closed).reward], ['BOB_1', '6']);
  check('and all are notified', actions(closed), [
    'Agent-Task-Assignment',
    'Offer-Rejected',
    'Agent-Task-Query',
    'Agent-Task-Query',
  ]);
  check('the result does not change', await board.result(id), closed);
  return id;
}

async function afterwards(board, { alice, bob, carol }, id) {
  const [, declined] = await board.act(bob, 'Decline-Task', about('BOB_1', id));
  check('the next offer is taken', actions(declined), ['Task-Declined', 'Agent-Task-Assignment']);
  check('for its offered fee', [data(declined, 1).agentId, data(declined, 1).reward], ['AO_Agent_1', '7']);
  await board.act(alice, 'Send-Result', about('AO_Agent_1', id), { done: true });
  check('and that is paid', await board.balance(carol), '13');
}

async function nobody(board, { alice, bob, carol }) {
  const task = wanted('tweet', '8', 'query');
  const id = await board.post(carol, 'Register-Task', task, { prompt: 'anybody?' });
  const [, declined] = await board.act(alice, 'Decline-Task', about('AO_Agent_1', id));
  check('a query can be declined', actions(declined), ['Task-Declined']);
  check('there are no offers', (await board.result(id)).Error, `No offers for task ${id}`);
  const [, late] = await offer(board, bob, 'BOB_1', id, '5');
  check('later offers are refused', late.Error, `Auction for task ${id} is closed`);
  check('nothing is paid', await board.balance(carol), '13');
}
