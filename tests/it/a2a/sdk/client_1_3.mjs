// A client with @a2a-js/sdk 1.3.0 that uses all operations.
//
// `node client_1_3.mjs FOLDER URL KEY BINDING SCENARIO [TEXT] [METADATA]`, where FOLDER has the package
// in `node_modules`. Prints one JSON line per step; exits with 1 if one failed.

import { randomUUID } from "node:crypto";

import { all, expect, fetchWithKey, load, openHook, options, Steps, until } from "./client_steps.mjs";

const given = options();
const { Message, Part, Role, StreamResponse, Task, TaskState, AgentCard, ListTasksResponse, taskStateToJSON } =
  await load(given.folder, "@a2a-js/sdk");
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await load(
  given.folder,
  "@a2a-js/sdk/client",
);

const steps = new Steps();
const fetchImpl = fetchWithKey(given.key);
const Transport = given.binding === "JSONRPC" ? JsonRpcTransportFactory : RestTransportFactory;
const resolver = new DefaultAgentCardResolver({ fetchImpl });
const factory = new ClientFactory({ transports: [new Transport({ fetchImpl })], cardResolver: resolver });
const card = await steps.run("card", () => resolver.resolve(given.base), (got) => AgentCard.toJSON(got));
const client = await factory.createFromAgentCard(card);

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_CANCELED } = TaskState;
const showTask = (got) => Task.toJSON(got);
const showEvent = (got) => StreamResponse.toJSON(got);
const showAnswer = (got) => ("messageId" in got ? { message: Message.toJSON(got) } : { task: Task.toJSON(got) });

function request(part, { task, contextId = "", atOnce = false, push } = {}) {
  const parts = [Part.fromJSON(typeof part === "string" ? { text: part } : part)];
  return {
    tenant: "",
    message: {
      messageId: randomUUID(),
      contextId: task?.contextId ?? contextId,
      taskId: task?.id ?? "",
      role: Role.ROLE_USER,
      parts,
      metadata: given.metadata,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: push,
      returnImmediately: atOnce,
    },
    metadata: undefined,
  };
}

function pushConfig(taskId, url) {
  const authentication = { scheme: "Bearer", credentials: "s3cret" };
  return { tenant: "", id: "c1", taskId, url, token: "tok-1", authentication };
}

/** Sends without a stream; the answer is a task in the given state. */
async function send(step, sent, state) {
  const task = await steps.run(step, () => client.sendMessage(sent), showAnswer);
  expect(!("messageId" in task), "no task but a message");
  expect(state === undefined || task.status.state === state, `unexpected state ${taskStateToJSON(task.status.state)}`);
  return task;
}

const start = (step, seconds, push) => send(step, request(`slow ${seconds}`, { atOnce: true, push }));
const stateOf = ({ payload }) => payload?.value?.status?.state;
const texts = (task) =>
  task.artifacts.flatMap(({ parts }) => parts.map(({ content }) => (content.$case === "text" ? content.value : ""))).join("");

/** Answers a task that asks, or will. */
async function answer(task) {
  const asks = () => client.getTask({ tenant: "", id: task.id });
  await until(async () => (await steps.run("subscribe_asks", asks, showTask)).status.state === TASK_STATE_INPUT_REQUIRED);
  await send("subscribe_answer", request("Lugano", { task, atOnce: true }));
}

const groups = {
  async card() {},
  async send() {
    await send("send", request(given.text), TASK_STATE_COMPLETED);
  },
  async stream() {
    const events = await steps.run("stream", () => all(client.sendMessageStream(request(given.text))), showEvent);
    expect(events[0].payload.$case === "task", "the first event is not the task");
    expect(stateOf(events.at(-1)) === TASK_STATE_COMPLETED, "the last event is not completed");
  },
  async data() {
    const part = { data: { n: 1.5, list: [1, "two", null], text: given.text } };
    await send("data", request(part), TASK_STATE_COMPLETED);
  },
  async kinds() {
    const chunks = await send("chunks", request("chunks"), TASK_STATE_COMPLETED);
    expect(texts(chunks) === "chunk 1 chunk 2 chunk 3 ", "unexpected chunks");
    const file = await send("file", request("file"), TASK_STATE_COMPLETED);
    expect(file.artifacts[0].parts[0].content.value.toString() === "file content", "unexpected file");
    await send("fail", request("fail"), TaskState.TASK_STATE_FAILED);
    await send("reject", request("reject"), TaskState.TASK_STATE_REJECTED);
    const message = await steps.run("message", () => client.sendMessage(request("message")), showAnswer);
    expect("messageId" in message, "no bare message");
    await steps.run("message_stream", () => all(client.sendMessageStream(request("message"))), showEvent);
    const events = await steps.run("chunks_stream", () => all(client.sendMessageStream(request("chunks"))), showEvent);
    const updates = events.filter(({ payload }) => payload.$case === "artifactUpdate");
    expect(updates.map(({ payload }) => payload.value.append).join() === "false,true,true", "unexpected `append`");
  },
  async get() {
    const sent = request(given.text);
    const task = await send("get_open", sent, TASK_STATE_COMPLETED);
    const get = (historyLength) => client.getTask({ tenant: "", id: task.id, historyLength });
    const whole = await steps.run("get", () => get(undefined), showTask);
    expect(whole.id === task.id && whole.contextId === task.contextId, "another task");
    expect(whole.history.some(({ messageId }) => messageId === sent.message.messageId), "history lacks the message");
    const none = await steps.run("get_without_history", () => get(0), showTask);
    expect(none.history.length === 0, "history was not asked for");
  },
  async list() {
    const contextId = randomUUID();
    const opened = [];
    for (const number of [0, 1, 2]) {
      opened.unshift((await send("list_open", request(`${given.text} ${number}`, { contextId }), TASK_STATE_COMPLETED)).id);
    }
    const query = { tenant: "", contextId, status: TaskState.UNRECOGNIZED, pageSize: 2, statusTimestampAfter: undefined };
    const listed = [];
    let pageToken = "";
    do {
      const page = await steps.run(
        "list",
        () => client.listTasks({ ...query, pageToken }),
        (got) => ListTasksResponse.toJSON(got),
      );
      expect(page.totalSize === 3, "unexpected total size");
      listed.push(...page.tasks.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken);
    expect(listed.join() === opened.join(), `listed ${listed}, opened ${opened}`);
  },
  async ask() {
    const asking = await send("ask", request("ask"), TASK_STATE_INPUT_REQUIRED);
    expect(asking.status.message.parts.length > 0, "the question is missing");
    const answered = await send("answer", request("Lugano", { task: asking }), TASK_STATE_COMPLETED);
    expect(answered.id === asking.id, "the answer opened another task");
    expect(texts(answered).includes("Lugano"), "the answer did not arrive");
    const events = await steps.run("ask_stream", () => all(client.sendMessageStream(request("ask"))), showEvent);
    expect(stateOf(events.at(-1)) === TASK_STATE_INPUT_REQUIRED, "the last event does not ask");
  },
  async cancel() {
    const { id } = await start("cancel_open", 30);
    const cancel = () => client.cancelTask({ tenant: "", id, metadata: undefined });
    const task = await steps.run("cancel", cancel, showTask);
    expect(task.status.state === TASK_STATE_CANCELED, "unexpected state");
    await steps.refused("cancel_again", ["TaskNotCancelable"], cancel);
  },
  async subscribe() {
    const task = await send("subscribe_open", request("ask", { atOnce: true }));
    const subscribe = () => client.resubscribeTask({ tenant: "", id: task.id });
    const events = await steps.run("subscribe", () => all(subscribe(), () => answer(task)), showEvent);
    expect(events[0].payload.$case === "task", "the first event is not the task");
    expect(stateOf(events.at(-1)) === TASK_STATE_COMPLETED, "the last event is not completed");
    await steps.refused("subscribe_ended", ["UnsupportedOperation"], () => all(subscribe()));
  },
  async push() {
    const task = await send("push_open", request("ask"));
    const which = { tenant: "", taskId: task.id, id: "c1" };
    const listIds = async () => {
      const { configs } = await client.listTaskPushNotificationConfig({ tenant: "", taskId: task.id, pageToken: "" });
      return configs.map(({ id }) => id);
    };
    const { url } = await openHook();
    await steps.run("push_create", () => client.createTaskPushNotificationConfig(pushConfig(task.id, url)));
    await steps.run("push_get", () => client.getTaskPushNotificationConfig(which));
    expect((await steps.run("push_list", listIds)).join() === "c1", "the config is not listed");
    await steps.run("push_delete", () => client.deleteTaskPushNotificationConfig(which));
    expect((await steps.run("push_list_after_delete", listIds)).length === 0, "the config is still listed");
  },
  async notify() {
    const hook = await openHook();
    const task = await start("notify_open", 1, pushConfig("", hook.url));
    const isLast = (body) => stateOf(StreamResponse.fromJSON(body)) === TASK_STATE_COMPLETED;
    const received = await steps.run("notify", () => hook.until(isLast));
    for (const { headers, body } of received) {
      expect(headers["x-a2a-notification-token"] === "tok-1", "the token is missing");
      const { value } = StreamResponse.fromJSON(body).payload;
      expect((value.taskId ?? value.id) === task.id, "of another task");
    }
  },
  async extended() {
    await steps.run("extended", () => client.getAgentCard(), (got) => AgentCard.toJSON(got));
  },
  async errors() {
    const id = randomUUID();
    const done = await send("errors_open", request(given.text));
    await steps.refused("get_unknown", ["TaskNotFound"], () => client.getTask({ tenant: "", id }));
    const unknown = request("more", { task: { id, contextId: "" } });
    await steps.refused("send_unknown", ["TaskNotFound"], () => client.sendMessage(unknown));
    const ended = request("more", { task: done });
    await steps.refused("send_ended", ["UnsupportedOperation"], () => client.sendMessage(ended));
  },
};

await steps.runGroups(groups, given.scenario);
