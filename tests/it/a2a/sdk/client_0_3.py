"""A client with a2a-sdk 0.3.26 that uses all operations it has, and checks all answers by the SDK's types.

`client_0_3.py URL KEY BINDING SCENARIO` prints one JSON line per step: `{"step","ok","got"}`, or
`{"step","ok","error"}` where an error was raised. Exits with another status than 0 if a step failed.
"""

import asyncio
import base64
import uuid
from typing import Any

import httpx
from pydantic import BaseModel

from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.client.client import Client
from a2a.client.middleware import ClientCallContext
from a2a.types import (
    AgentCard,
    Message,
    MessageSendConfiguration,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from answers import Exchange, Recording
from client_steps import Hook, Steps, arguments, expect, run_groups

ENDED = (TaskState.completed, TaskState.failed, TaskState.canceled, TaskState.rejected)
GROUPS = "card send stream data kinds get ask cancel subscribe push notify extended errors".split()
TASK_NOT_FOUND, TASK_NOT_CANCELABLE = "-32001", "-32002"


# The types of objects that say what they are.
KINDS: dict[str, type[BaseModel]] = {
    "task": Task,
    "message": Message,
    "status-update": TaskStatusUpdateEvent,
    "artifact-update": TaskArtifactUpdateEvent,
}
# The types of the other results.
RESULTS: dict[str, type[BaseModel]] = {
    "tasks/pushNotificationConfig/set": types.TaskPushNotificationConfig,
    "tasks/pushNotificationConfig/get": types.TaskPushNotificationConfig,
    "agent/getAuthenticatedExtendedCard": AgentCard,
}


def check(exchange: Exchange, body: Any) -> None:
    """Reads a body by the SDK's models, and looks for members that they ignore."""
    if exchange.call is None:
        AgentCard.model_validate(body)
        return
    expect(body["jsonrpc"] == "2.0" and body["id"] == exchange.call["id"], "another call's answer")
    if "error" in body:
        types.JSONRPCErrorResponse.model_validate(body)
        return
    method, result = exchange.call["method"], body["result"]
    read(RESULTS.get(method) or KINDS[result["kind"]], result)


def read(model: type[BaseModel], body: Any) -> None:
    validated = model.model_validate(body)
    # A card is for readers of both versions.
    unknown = [] if model is AgentCard else unknown_members(body, shown(validated), model.__name__)
    expect(not unknown, f"unknown members: {', '.join(unknown)}")


def unknown_members(body: Any, known: Any, path: str) -> list[str]:
    """Members that the models ignore."""
    if isinstance(body, dict) and isinstance(known, dict):
        unknown = [f"{path}.{name}" for name, value in body.items() if name not in known and value is not None]
        for name in body.keys() & known.keys():
            unknown += unknown_members(body[name], known[name], f"{path}.{name}")
        return unknown
    if isinstance(body, list) and isinstance(known, list):
        pairs = enumerate(zip(body, known, strict=False))
        return [one for index, (a, b) in pairs for one in unknown_members(a, b, f"{path}[{index}]")]
    return []


def shown(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def shown_event(event: Any) -> Any:
    """A message, or the task with its update."""
    if isinstance(event, Message):
        return shown(event)
    task, update = event
    return shown(task if update is None else update)


class OneKey(CredentialService):
    """The same key for every scheme of the card."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def get_credentials(self, security_scheme_name: str, context: ClientCallContext | None) -> str | None:
        return self._key or None


class Session:
    """The clients of one run: one that streams, one that does not."""

    def __init__(self, options: Any, http: httpx.AsyncClient, steps: Steps) -> None:
        self.options, self.http, self.steps = options, http, steps
        self.streaming: Client
        self.blocking: Client

    async def open(self) -> None:
        async def fetch() -> tuple[Any, AgentCard]:
            card = await A2ACardResolver(self.http, self.options.url).get_agent_card()
            return shown(card), card

        card = await self.steps.run("card", fetch)
        interceptors = []
        if self.options.key and card.security:
            interceptors = [AuthInterceptor(OneKey(self.options.key))]
        elif self.options.key:
            self.http.headers["Authorization"] = f"Bearer {self.options.key}"

        def client(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=self.http,
                supported_transports=[self.options.binding],
                use_client_preference=True,
            )
            return ClientFactory(config).create(card, interceptors=interceptors)

        self.streaming, self.blocking = client(True), client(False)

    def message(self, text: str | None = None, data: Any = None, task: Task | None = None) -> Message:
        part = {"kind": "text", "text": text} if data is None else {"kind": "data", "data": data}
        content: dict[str, Any] = {"messageId": str(uuid.uuid4()), "role": "user", "parts": [part]}
        if self.options.metadata:
            content["metadata"] = self.options.metadata
        if task is not None:
            content.update(taskId=task.id, contextId=task.context_id)
        return Message.model_validate(content)

    async def send(
        self,
        step: str,
        message: Message,
        state: TaskState | None,
        configuration: MessageSendConfiguration | None = None,
    ) -> Task:
        """Sends without a stream. The answer is a task in the given state."""

        async def action() -> tuple[Any, Task]:
            sent = self.blocking.send_message(message, configuration=configuration)
            answers = [answer async for answer in sent]
            expect(len(answers) == 1, f"{len(answers)} answers")
            expect(not isinstance(answers[0], Message), f"no task but {answers[0]}")
            task = answers[0][0]
            expect(state is None or task.status.state == state, f"unexpected state: {shown(task)}")
            return shown(task), task

        return await self.steps.run(step, action)

    async def start(self, step: str, seconds: int, hook: str = "") -> Task:
        configuration = MessageSendConfiguration(blocking=False)
        if hook:
            configuration.push_notification_config = push_config(hook)
        return await self.send(step, self.message(f"slow {seconds}"), None, configuration)

    async def stream(self, message: Message) -> list[Any]:
        return [event async for event in self.streaming.send_message(message)]


def push_config(url: str) -> types.PushNotificationConfig:
    authentication = types.PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="s3cret")
    return types.PushNotificationConfig(id="c1", url=url, token="tok-1", authentication=authentication)


def texts(task: Task) -> str:
    parts = [part.root for artifact in task.artifacts or [] for part in artifact.parts]
    return "".join(part.text for part in parts if part.kind == "text")


class Scenarios:
    """The groups of steps. Each opens its own tasks, so that any of them can be run alone."""

    def __init__(self, session: Session) -> None:
        self.session, self.steps, self.options = session, session.steps, session.options

    async def card(self) -> None:
        """The card was fetched before the first group."""

    async def send(self) -> None:
        await self.session.send("send", self.session.message(self.options.text), TaskState.completed)

    async def stream(self) -> None:
        async def action() -> tuple[Any, None]:
            events = await self.session.stream(self.session.message(self.options.text))
            expect(events[0][1] is None, "the first event is not the task")
            expect(events[-1][0].status.state == TaskState.completed, "the last event is not completed")
            expect(events[-1][1].final, "the last event is not final")
            return [shown_event(event) for event in events], None

        await self.steps.run("stream", action)

    async def data(self) -> None:
        message = self.session.message(data={"n": 1.5, "list": [1, "two", None], "text": self.options.text})
        await self.session.send("data", message, TaskState.completed)

    async def kinds(self) -> None:
        chunks = await self.session.send("chunks", self.session.message("chunks"), TaskState.completed)
        expect(texts(chunks) == "chunk 1 chunk 2 chunk 3 ", f"unexpected chunks: {shown(chunks)}")
        file = await self.session.send("file", self.session.message("file"), TaskState.completed)
        content = shown(file)["artifacts"][0]["parts"][0]["file"]["bytes"]
        expect(base64.b64decode(content) == b"file content", f"unexpected file: {shown(file)}")
        await self.session.send("fail", self.session.message("fail"), TaskState.failed)
        await self.session.send("reject", self.session.message("reject"), TaskState.rejected)

        async def bare() -> tuple[Any, None]:
            sent = self.session.blocking.send_message(self.session.message("message"))
            answers = [answer async for answer in sent]
            expect(isinstance(answers[0], Message), f"no bare message: {answers}")
            return shown_event(answers[0]), None

        async def bare_stream() -> tuple[Any, None]:
            events = await self.session.stream(self.session.message("message"))
            return [shown_event(event) for event in events], None

        async def stream_chunks() -> tuple[Any, None]:
            events = await self.session.stream(self.session.message("chunks"))
            updates = [event[1] for event in events if isinstance(event[1], TaskArtifactUpdateEvent)]
            expect([bool(one.append) for one in updates] == [False, True, True], "unexpected `append`")
            expect(texts(events[-1][0]) == "chunk 1 chunk 2 chunk 3 ", "the SDK lost a chunk")
            return [shown_event(event) for event in events], None

        await self.steps.run("message", bare)
        await self.steps.run("message_stream", bare_stream)
        await self.steps.run("chunks_stream", stream_chunks)

    async def get(self) -> None:
        sent = self.session.message(self.options.text)
        task = await self.session.send("get_open", sent, TaskState.completed)

        async def get(length: int | None) -> tuple[Any, Task]:
            got = await self.session.blocking.get_task(types.TaskQueryParams(id=task.id, history_length=length))
            expect(got.id == task.id and got.context_id == task.context_id, "another task")
            expect(got.artifacts == task.artifacts, "other artifacts than in the answer to send")
            return shown(got), got

        whole = await self.steps.run("get", lambda: get(None))
        ids = [one.message_id for one in whole.history or []]
        expect(sent.message_id in ids, "history lacks the message")
        one = await self.steps.run("get_with_short_history", lambda: get(1))
        expect(len(one.history or []) <= 1, "more history than asked for")

    async def ask(self) -> None:
        asking = await self.session.send("ask", self.session.message("ask"), TaskState.input_required)
        expect(asking.status.message is not None, "the question is missing")
        follow_up = self.session.message("Lugano", task=asking)
        answered = await self.session.send("answer", follow_up, TaskState.completed)
        expect(answered.id == asking.id, "the answer opened another task")
        expect("Lugano" in texts(answered), f"the answer did not arrive: {shown(answered)}")

        async def ask_streaming() -> tuple[Any, None]:
            events = await self.session.stream(self.session.message("ask"))
            expect(events[-1][0].status.state == TaskState.input_required, "the last event does not ask")
            return [shown_event(event) for event in events], None

        await self.steps.run("ask_stream", ask_streaming)

    async def cancel(self) -> None:
        task = await self.session.start("cancel_open", 30)

        async def cancel() -> tuple[Any, None]:
            got = await self.session.blocking.cancel_task(types.TaskIdParams(id=task.id))
            expect(got.status.state == TaskState.canceled, f"unexpected state: {shown(got)}")
            return shown(got), None

        await self.steps.run("cancel", cancel)
        await self.steps.refused("cancel_again", (TASK_NOT_CANCELABLE,), cancel)

    async def subscribe(self) -> None:
        at_once = MessageSendConfiguration(blocking=False)
        task = await self.session.send("subscribe_open", self.session.message("ask"), None, at_once)

        async def subscribe() -> tuple[Any, None]:
            query = types.TaskIdParams(id=task.id)
            events = []
            async for event in self.session.streaming.resubscribe(query):
                events.append(event)
                if len(events) == 1:
                    await self.answer(task)
            expect(events[-1][0].status.state == TaskState.completed, "the last event is not completed")
            return [shown_event(event) for event in events], None

        await self.steps.run("subscribe", subscribe)

    async def answer(self, task: Task) -> None:
        """Answers a task that asks, or will."""

        async def asks() -> tuple[Any, bool]:
            got = await self.session.blocking.get_task(types.TaskQueryParams(id=task.id))
            return shown(got), got.status.state == TaskState.input_required

        while not await self.steps.run("subscribe_asks", asks):
            await asyncio.sleep(0.05)
        follow_up = self.session.message("Lugano", task=task)
        await self.session.send("subscribe_answer", follow_up, None, MessageSendConfiguration(blocking=False))

    async def push(self) -> None:
        """This SDK's client can only set and get."""
        task = await self.session.send("push_open", self.session.message("ask"), None)
        client, config = self.session.blocking, push_config(Hook().url)

        async def create() -> tuple[Any, None]:
            wanted = types.TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
            made = await client.set_task_callback(wanted)
            expect(made.push_notification_config.url == config.url, f"another config: {shown(made)}")
            return shown(made), None

        async def get(config_id: str | None) -> tuple[Any, None]:
            query = types.GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id=config_id)
            return shown(await client.get_task_callback(query)), None

        await self.steps.run("push_create", create)
        await self.steps.run("push_get", lambda: get("c1"))
        await self.steps.run("push_get_without_id", lambda: get(None))

    async def notify(self) -> None:
        hook = Hook()
        task = await self.session.start("notify_open", 1, hook.url)

        async def notified() -> tuple[Any, None]:
            received = await hook.until(lambda body: Task.model_validate(body).status.state in ENDED)
            for one in received:
                expect(one["headers"].get("x-a2a-notification-token") == "tok-1", "the token is missing")
                read(Task, one["body"])
                expect(one["body"]["id"] == task.id, "of another task")
            return received, None

        await self.steps.run("notify", notified)

    async def extended(self) -> None:
        async def action() -> tuple[Any, None]:
            return shown(await self.session.blocking.get_card()), None

        await self.steps.run("extended", action)

    async def errors(self) -> None:
        client, nothing = self.session.blocking, str(uuid.uuid4())

        async def get() -> tuple[Any, None]:
            return shown(await client.get_task(types.TaskQueryParams(id=nothing))), None

        async def send(message: Message) -> tuple[Any, None]:
            return [shown_event(answer) async for answer in client.send_message(message)], None

        done = await self.session.send("errors_open", self.session.message(self.options.text), None)
        unknown = self.session.message("more")
        unknown.task_id = nothing
        await self.steps.refused("get_unknown", (TASK_NOT_FOUND,), get)
        await self.steps.refused("send_unknown", (TASK_NOT_FOUND,), lambda: send(unknown))
        # The SDK's own server says -32602, a hub -32004.
        more = self.session.message("more", task=done)
        await self.steps.refused("send_ended", ("-32602", "-32004"), lambda: send(more))


async def main() -> None:
    options = arguments(__doc__ or "", GROUPS).parse_args()
    steps, answers = Steps(), Recording()
    async with httpx.AsyncClient(timeout=60, transport=answers) as http:
        session = Session(options, http, steps)
        await session.open()
        scenarios = Scenarios(session)
        groups = {name: getattr(scenarios, name) for name in GROUPS}
        await run_groups(groups, options.scenario, steps, lambda: answers.check(check))


if __name__ == "__main__":
    asyncio.run(main())
