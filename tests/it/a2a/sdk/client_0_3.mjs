// A client with @a2a-js/sdk 0.3.14 that uses all operations.
//
// `node client_0_3.mjs FOLDER URL KEY BINDING SCENARIO [TEXT] [METADATA]`, where FOLDER has the package
// in `node_modules`. Prints one JSON line per step; exits with 1 if one failed.

import { randomUUID } from "node:crypto";

import { all, expect, fetchWithKey, load, openHook, options, Steps, until } from "./client_steps.mjs";

const given = options();
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await load(
  given.folder,
  "@a2a-js/sdk/client",
);

const steps = new Steps();
const fetchImpl = fetchWithKey(given.key);
const Transport = given.binding === "JSONRPC" ? JsonRpcTransportFactory : RestTransportFactory;
const resolver = new DefaultAgentCardResolver({ fetchImpl });
const factory = new ClientFactory({ transports: [new Transport({ fetchImpl })], cardResolver: resolver });
const card = await steps.run("card", () => resolver.resolve(given.base));
const client = await factory.createFromAgentCard(card);

function request(part, { task, blocking, push } = {}) {
  const parts = [typeof part === "string" ? { kind: "text", text: part } : part];
  const message = { kind: "message", messageId: randomUUID(), role: "user", parts, metadata: given.metadata };
  if (task) Object.assign(message, { taskId: task.id, contextId: task.contextId });
  const configuration = {};
  if (blocking !== undefined) configuration.blocking = blocking;
  if (push) configuration.pushNotificationConfig = push;
  return { message, configuration };
}

function pushConfig(url) {
  const authentication = { schemes: ["Bearer"], credentials: "s3cret" };
  return { id: "c1", url, token: "tok-1", authentication };
}

/** Sends without a stream; the answer is a task in the given state. */
async function send(step, sent, state) {
  const task = await steps.run(step, () => client.sendMessage(sent));
  expect(task.kind === "task", "no task but a message");
  expect(state === undefined || task.status.state === state, `unexpected state ${task.status.state}`);
  return task;
}

const start = (step, seconds, push) => send(step, request(`slow ${seconds}`, { blocking: false, push }));
const stream = (step, sent) => steps.run(step, () => all(client.sendMessageStream(sent)));
const texts = (task) => task.artifacts.flatMap(({ parts }) => parts.map(({ text }) => text ?? "")).join("");

/** Answers a task that asks, or will. */
async function answer(task) {
  const asks = () => client.getTask({ id: task.id });
  await until(async () => (await steps.run("subscribe_asks", asks)).status.state === "input-required");
  await send("subscribe_answer", request("Lugano", { task, blocking: false }));
}

const groups = {
  async card() {},
  async send() {
    await send("send", request(given.text), "completed");
  },
  async stream() {
    const events = await stream("stream", request(given.text));
    expect(events[0].kind === "task", "the first event is not the task");
    expect(events.at(-1).status.state === "completed" && events.at(-1).final, "the last event is not a final one");
  },
  async data() {
    const data = { n: 1.5, list: [1, "two", null], text: given.text };
    await send("data", request({ kind: "data", data }), "completed");
  },
  async kinds() {
    const chunks = await send("chunks", request("chunks"), "completed");
    expect(texts(chunks) === "chunk 1 chunk 2 chunk 3 ", "unexpected chunks");
    const file = await send("file", request("file"), "completed");
    const content = Buffer.from(file.artifacts[0].parts[0].file.bytes, "base64").toString();
    expect(content === "file content", "unexpected file");
    await send("fail", request("fail"), "failed");
    await send("reject", request("reject"), "rejected");
    const message = await steps.run("message", () => client.sendMessage(request("message")));
    expect(message.kind === "message", "no bare message");
    await stream("message_stream", request("message"));
    const events = await stream("chunks_stream", request("chunks"));
    const updates = events.filter(({ kind }) => kind === "artifact-update");
    expect(updates.map(({ append }) => Boolean(append)).join() === "false,true,true", "unexpected `append`");
  },
  async get() {
    const sent = request(given.text);
    const task = await send("get_open", sent, "completed");
    const whole = await steps.run("get", () => client.getTask({ id: task.id }));
    expect(whole.id === task.id && whole.contextId === task.contextId, "another task");
    expect(whole.history.some(({ messageId }) => messageId === sent.message.messageId), "history lacks the message");
    const short = await steps.run("get_with_short_history", () => client.getTask({ id: task.id, historyLength: 1 }));
    expect((short.history ?? []).length <= 1, "more history than asked for");
  },
  async ask() {
    const asking = await send("ask", request("ask"), "input-required");
    expect(asking.status.message, "the question is missing");
    const answered = await send("answer", request("Lugano", { task: asking }), "completed");
    expect(answered.id === asking.id, "the answer opened another task");
    expect(texts(answered).includes("Lugano"), "the answer did not arrive");
    const events = await stream("ask_stream", request("ask"));
    expect(events.at(-1).status.state === "input-required", "the last event does not ask");
  },
  async cancel() {
    const { id } = await start("cancel_open", 30);
    const task = await steps.run("cancel", () => client.cancelTask({ id }));
    expect(task.status.state === "canceled", "unexpected state");
    await steps.refused("cancel_again", ["TaskNotCancelable", "-32002"], () => client.cancelTask({ id }));
  },
  async subscribe() {
    const task = await send("subscribe_open", request("ask", { blocking: false }));
    const subscribe = () => all(client.resubscribeTask({ id: task.id }), () => answer(task));
    const events = await steps.run("subscribe", subscribe);
    expect(events.at(-1).status.state === "completed", "the last event is not completed");
  },
  async push() {
    const { id } = await send("push_open", request("ask"));
    const { url } = await openHook();
    const listIds = async () => {
      const configs = await client.listTaskPushNotificationConfig({ id });
      return configs.map(({ pushNotificationConfig }) => pushNotificationConfig.id);
    };
    const wanted = { taskId: id, pushNotificationConfig: pushConfig(url) };
    const which = { id, pushNotificationConfigId: "c1" };
    await steps.run("push_create", () => client.setTaskPushNotificationConfig(wanted));
    await steps.run("push_get", () => client.getTaskPushNotificationConfig(which));
    expect((await steps.run("push_list", listIds)).join() === "c1", "the config is not listed");
    await steps.run("push_delete", () => client.deleteTaskPushNotificationConfig(which));
    expect((await steps.run("push_list_after_delete", listIds)).length === 0, "the config is still listed");
  },
  async notify() {
    const hook = await openHook();
    const task = await start("notify_open", 1, pushConfig(hook.url));
    const received = await steps.run("notify", () => hook.until((body) => body.status?.state === "completed"));
    for (const { headers, body } of received) {
      expect(headers["x-a2a-notification-token"] === "tok-1", "the token is missing");
      expect(body.kind === "task" && body.id === task.id, "not this task");
    }
  },
  async extended() {
    await steps.run("extended", () => client.getAgentCard());
  },
  async errors() {
    const id = randomUUID();
    const done = await send("errors_open", request(given.text));
    await steps.refused("get_unknown", ["TaskNotFound", "-32001"], () => client.getTask({ id }));
    const unknown = request("more");
    unknown.message.taskId = id;
    await steps.refused("send_unknown", ["TaskNotFound", "-32001"], () => client.sendMessage(unknown));
    // The SDK's own server says -32602, a hub -32004.
    const ended = request("more", { task: done });
    await steps.refused("send_ended", ["-32602", "-32004", "UnsupportedOperation"], () => client.sendMessage(ended));
  },
};

await steps.runGroups(groups, given.scenario);
