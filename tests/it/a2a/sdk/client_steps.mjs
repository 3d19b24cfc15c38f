// Shared by the clients: options, one JSON line per step, and a receiver of push notifications.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const NOTIFIED_WITHIN_MS = 30_000;
const HOOK_HEADERS = ["authorization", "content-type", "x-a2a-notification-token", "webhook-id"];

/** `FOLDER URL KEY BINDING SCENARIO [TEXT] [METADATA]` of the command line. */
export function options() {
  const [folder, url, key = "", binding = "JSONRPC", scenario = "all", text = "hello", metadata = "{}"] =
    process.argv.slice(2);
  if (!folder || !url || !["JSONRPC", "HTTP+JSON"].includes(binding)) {
    console.error("usage: node client.mjs FOLDER_OF_PACKAGE URL [KEY] [JSONRPC|HTTP+JSON] [SCENARIO] [TEXT] [METADATA]");
    process.exit(2);
  }
  // The SDK resolves the path of the card against the base, which must end in a slash.
  const base = url.endsWith("/") ? url : `${url}/`;
  return { folder, base, key, binding, scenario, text, metadata: JSON.parse(metadata) };
}

/** Loads a module of the package that is installed in a folder. */
export async function load(folder, name) {
  const require = createRequire(join(folder, "package.json"));
  return import(pathToFileURL(require.resolve(name)).href);
}

/** `fetch` that sends a key. */
export function fetchWithKey(key) {
  return (url, init = {}) => {
    const headers = new Headers(init.headers);
    if (key) headers.set("Authorization", `Bearer ${key}`);
    return fetch(url, { ...init, headers });
  };
}

export function expect(condition, why) {
  if (!condition) throw new Error(typeof why === "string" ? why : JSON.stringify(why));
}

/** Collects all events; `onFirst` runs after the first one. */
export async function all(events, onFirst = async () => {}) {
  const list = [];
  for await (const event of events) {
    list.push(event);
    if (list.length === 1) await onFirst();
  }
  return list;
}

/** Asks again until the answer is yes. */
export async function until(asked) {
  while (!(await asked())) await new Promise((resolve) => setTimeout(resolve, 50));
}

function describe(error) {
  const inner = error.errorResponse?.error ?? error.cause ?? {};
  const described = { type: error.constructor.name, name: error.name, message: error.message };
  for (const source of [error, inner]) {
    for (const name of ["code", "data", "statusCode"]) {
      if (source[name] !== undefined) described[name] = source[name];
    }
  }
  return described;
}

/** Runs steps and prints one JSON line for each. */
export class Steps {
  failures = 0;

  /** A step that must succeed; prints and returns what it got. `show` makes it JSON. */
  async run(step, action, show = (got) => got) {
    try {
      const got = await action();
      this.#print({ step, ok: true, got: Array.isArray(got) ? got.map(show) : show(got) });
      return got;
    } catch (error) {
      this.#print({ step, ok: false, error: describe(error) });
      throw error;
    }
  }

  /** A step that must throw an error whose type, text or code contains one of the names. */
  async refused(step, names, action) {
    try {
      const got = await action();
      this.#print({ step, ok: false, got, error: { message: "it was not refused" } });
    } catch (error) {
      const described = describe(error);
      const text = JSON.stringify(described);
      this.#print({ step, ok: names.some((name) => text.includes(name)), error: described });
    }
  }

  #print(line) {
    if (!line.ok) this.failures += 1;
    console.log(JSON.stringify(line));
  }

  /** Runs the chosen groups of steps. A failed step ends its group only. */
  async runGroups(groups, scenario) {
    const names = scenario === "all" ? Object.keys(groups) : scenario.split(",");
    for (const name of names) {
      if (!groups[name]) {
        console.error(`unknown scenario ${name}; known are all, ${Object.keys(groups).join(", ")}`);
        process.exit(2);
      }
      const before = this.failures;
      try {
        await groups[name]();
      } catch (error) {
        if (this.failures === before) this.#print({ step: name, ok: false, error: describe(error) });
      }
    }
    if (this.failures) console.error(`${this.failures} steps failed`);
    process.exit(this.failures ? 1 : 0);
  }
}

/** A receiver of push notifications on this machine. */
export async function openHook() {
  const received = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const headers = Object.fromEntries(HOOK_HEADERS.filter((name) => request.headers[name]).map((name) => [name, request.headers[name]]));
    received.push({ headers, body: JSON.parse(body) });
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const until = async (isLast) => {
    const deadline = Date.now() + NOTIFIED_WITHIN_MS;
    while (!received.some((one) => isLast(one.body))) {
      if (Date.now() > deadline) throw new Error(`no last notification: ${JSON.stringify(received)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return received;
  };
  return { url: `http://127.0.0.1:${server.address().port}/hook`, received, until };
}
