// An invalid order gets an error in its result, and changes nothing.

import { about, actions, check, wanted } from './kit.mjs';

export async function errors(board, { alice, bob, carol }) {
  const before = await board.board();
  const agent = (more) => ({
    'RedStone-Agent-Id': 'BOB_2',
    'RedStone-Agent-Topic': 'tweet',
    'RedStone-Agent-Fee': '5',
    ...more,
  });
  const register = 'Register-Agent-Profile';
  const other = '1seRanklLU_1VTGkEk7P0xAwMJfA7owA1JHW5KyZKlY';
  const cases = [
    [bob, register, agent({ Protocol: 'other' }), {}, 'Unknown protocol other, supported: C.L.A.R.A.'],
    [bob, register, agent({ 'RedStone-Agent-Topic': 'broadcast' }), {}, 'Unknown Topic broadcast'],
    [bob, register, agent({ 'RedStone-Agent-Fee': '007' }), {}, 'Value Agent-Fee must be positive integer'],
    [bob, register, agent({ 'RedStone-Agent-Id': 'AO_Agent_1' }), {}, `${bob.address} does not own AO_Agent_1`],
    [carol, 'Register-Task', wanted('tweet', '0', 'cheapest'), {}, 'Value Agent-Reward must be positive integer'],
    [carol, 'Register-Task', wanted('tweet', '5', 'best'), {}, 'Unknown strategy best'],
    [carol, 'Register-Task', wanted('nft', '5', 'cheapest'), {}, 'No agents to choose from'],
    [carol, 'Register-Task', wanted('tweet', '4', 'cheapest'), {}, 'No agents to choose from'],
    [carol, 'Register-Task', wanted('tweet', '14', 'cheapest'), {}, `Requesting agent (${carol.address}) funds (13) are insufficient`],
    [alice, 'Send-Result', about('AO_Agent_1', other), {}, 'Agent was not assigned to task'],
    [alice, 'Send-Result', about('BOB_1', other), {}, `Agent BOB_1 not registered for sender ${alice.address}`],
    [alice, 'Send-Result', { 'RedStone-Agent-Id': 'AO_Agent_1' }, {}, 'Tag RedStone-Task-Id is required'],
    [alice, 'Decline-Task', about('AO_Agent_1', other), {}, 'Agent was not assigned to task'],
    [alice, 'Balance', { Recipient: bob.address }, {}, 'Sign this message to read it'],
    [alice, 'Balances', {}, {}, 'Sign this message to read it'],
  ];
  for (const [by, action, named, payload, error] of cases) {
    const [, result] = await board.act(by, action, named, payload);
    check(`${action} is refused: ${error.split(' ').slice(0, 3).join(' ')}`, result.Error, error);
    check('and there are no messages', actions(result), []);
  }
  const [, unknown] = await board.act(carol, 'Make-Coffee', {});
  check('an unknown action is not an error', [unknown.Error, actions(unknown)], [undefined, []]);
  check('nothing has changed', await board.board(), before);
}
