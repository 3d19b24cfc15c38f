// Shared by the parts of the run: the unmodified client, throw-away wallets, and one JSON line for
// every check. The test that starts the script reads the lines and decides whether it passed.

import { createHash, generateKeyPair } from 'node:crypto';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';

export const PROCESS = 'CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc';
const PROTOCOL = 'C.L.A.R.A.';

const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
let checks = 0;

/** Prints the result of one check. */
export function check(name, got, wanted = true) {
  checks += 1;
  const ok = isDeepStrictEqual(got, wanted);
  print(ok ? { check: name, ok } : { check: name, ok, got: got ?? null, wanted });
}

/** Prints that the run is complete. */
export function end() {
  print({ end: true, checks });
}

const heard = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Waits until the test that started the script has restarted the hub. */
export async function pause(why) {
  print({ pause: why });
  await heard.next();
}

/** The last posted item, for a repeat. */
export const posted = { last: null };

/** The client as installed. Its requests are recorded, not changed; nothing leaves this machine. */
export function load(folder) {
  const send = globalThis.fetch;
  globalThis.fetch = async (to, how) => {
    const { hostname } = new URL(to?.url ?? to);
    if (!/^127(\.\d+){3}$/.test(hostname)) throw new Error(`${hostname} is not this machine`);
    if (how?.method === 'POST' && how.body?.byteLength > 0) posted.last = how.body;
    return send(to, how);
  };
  const entry = `${folder}/node_modules/@permaweb/aoconnect/dist/index.js`;
  return import(pathToFileURL(entry).href);
}

/** A new wallet, with the client's signer for it. */
export async function wallet(client) {
  const kind = { modulusLength: 4096, publicExponent: 65537 };
  const { privateKey } = await promisify(generateKeyPair)('rsa', kind);
  const jwk = privateKey.export({ format: 'jwk' });
  const owner = Buffer.from(jwk.n, 'base64url');
  const address = createHash('sha256').update(owner).digest('base64url');
  return { address, signer: client.createDataItemSigner(jwk) };
}

export const tags = (named) => Object.entries(named).map(([name, value]) => ({ name, value }));

/** The first tag of a message with this name. */
export const tag = (message, name) => message?.Tags?.find((one) => one.name === name)?.value;

/** The actions of a result's messages, in order. */
export const actions = (result) => (result.Messages ?? []).map((one) => tag(one, 'Action'));

/** The data of a result's messages. */
export const data = (result, at = 0) => JSON.parse(result.Messages[at].Data);

/** The market through one set of the client's functions. */
export function market({ message, result, dryrun }) {
  /** Sends a message and reads its result. */
  const say = async (by, named, payload) => {
    const text = payload === undefined ? undefined : JSON.stringify(payload);
    const id = await message({ process: PROCESS, tags: tags(named), signer: by.signer, data: text });
    return [id, await result({ message: id, process: PROCESS })];
  };
  const act = (by, action, named, payload) =>
    say(by, { Action: action, Protocol: PROTOCOL, ...named }, payload);
  const board = async (action = 'List-Agents') =>
    data(await dryrun({ process: PROCESS, tags: tags({ Action: action }) }));
  return {
    say,
    act,
    /** Sends a message without reading its result. */
    post: (by, action, named, payload) =>
      message({
        process: PROCESS,
        tags: tags({ Action: action, Protocol: PROTOCOL, ...named }),
        signer: by.signer,
        data: JSON.stringify(payload),
      }),
    result: (id) => result({ message: id, process: PROCESS }),
    board,
    listed: async (id) => (await board()).find((agent) => agent.id === id),
    queue: async () => (await board('Tasks-Queue')).map((task) => task.id),
    register: (by, id, topic, fee) =>
      act(by, 'Register-Agent-Profile', agent(id, { topic, fee }), { url: 'https://ppe.agent' }),
    task: (by, topic, reward, matching, more) =>
      act(by, 'Register-Task', wanted(topic, reward, matching, more), { prompt: 'whatever' }),
    balance: async (by) => tag((await act(by, 'Balance', {}))[1].Messages[0], 'Balance'),
  };
}

const agent = (id, { topic, fee }) => ({
  'RedStone-Agent-Id': id,
  'RedStone-Agent-Topic': topic,
  'RedStone-Agent-Fee': fee,
});

export const wanted = (topic, reward, matching, more) => ({
  'RedStone-Agent-Topic': topic,
  'RedStone-Agent-Reward': reward,
  'RedStone-Agent-Matching': matching,
  ...more,
});

export const about = (agentId, taskId) => ({
  'RedStone-Agent-Id': agentId,
  'RedStone-Task-Id': taskId,
});
