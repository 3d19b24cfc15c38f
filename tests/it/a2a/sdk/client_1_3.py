"""A client with a2a-sdk 1.3.0 that uses all operations, and checks all answers by the SDK's types.

`client_1_3.py URL KEY BINDING SCENARIO` prints one JSON line per step: `{"step","ok","got"}`, or
`{"step","ok","error"}` where an error was raised. Exits with another status than 0 if a step failed.
"""

import asyncio
import re
import uuid
from typing import Any

import httpx
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message as Proto

from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.client.client import Client, ClientCallContext
from a2a.types import a2a_pb2
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, StreamResponse, Task, TaskState
from a2a.utils.proto_utils import validate_proto_required_fields
from answers import Exchange, Recording
from client_steps import Hook, Steps, arguments, expect, run_groups

# Its required members may be empty in an answer without tasks.
UNCHECKED = ("ListTasksResponse",)
ENDED = {
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
}
GROUPS = "card send stream data kinds get list ask cancel subscribe push notify extended errors".split()


# The types of the results of JSON-RPC.
RESULTS = {
    "SendMessage": "SendMessageResponse",
    "SendStreamingMessage": "StreamResponse",
    "SubscribeToTask": "StreamResponse",
    "GetTask": "Task",
    "ListTasks": "ListTasksResponse",
    "CancelTask": "Task",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "GetTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs": "ListTaskPushNotificationConfigsResponse",
    "DeleteTaskPushNotificationConfig": "",
    "GetExtendedAgentCard": "AgentCard",
}
# The types of the answers of HTTP+JSON: the method, and the end of the path.
ANSWERS = [
    ("POST", r"/message:send", "SendMessageResponse"),
    ("POST", r"/message:stream", "StreamResponse"),
    ("(GET|POST)", r"/tasks/[^/]+:subscribe", "StreamResponse"),
    ("POST", r"/tasks/[^/]+:cancel", "Task"),
    ("GET", r"/tasks", "ListTasksResponse"),
    ("GET", r"/tasks/[^/]+", "Task"),
    ("POST", r"/tasks/[^/]+/pushNotificationConfigs", "TaskPushNotificationConfig"),
    ("GET", r"/tasks/[^/]+/pushNotificationConfigs", "ListTaskPushNotificationConfigsResponse"),
    ("GET", r"/tasks/[^/]+/pushNotificationConfigs/[^/]+", "TaskPushNotificationConfig"),
    ("DELETE", r"/tasks/[^/]+/pushNotificationConfigs/[^/]+", ""),
    ("GET", r"/extendedAgentCard", "AgentCard"),
]
CARD_PATH = "/.well-known/agent-card.json"


def check(exchange: Exchange, body: Any) -> None:
    """Reads a body without allowing unknown members, and looks for the required ones."""
    if exchange.path.endswith(CARD_PATH):
        # Without a version, the card has members for readers of 0.3 as well.
        if "a2a-version" in exchange.headers:
            read("AgentCard", body)
    elif isinstance(exchange.call, dict) and "jsonrpc" in exchange.call:
        expect(body["jsonrpc"] == "2.0" and body["id"] == exchange.call["id"], "another call's answer")
        if "error" not in body:
            read(RESULTS[exchange.call["method"]], body["result"])
    elif exchange.status < 400:
        request = f"{exchange.method} {exchange.path}"
        names = [name for method, end, name in ANSWERS if re.fullmatch(f"{method} .*{end}", request)]
        read(names[0], body)


def read(name: str, body: Any) -> None:
    if not name:
        expect(not body, "there is nothing to answer")
        return
    message = ParseDict(body, getattr(a2a_pb2, name)(), ignore_unknown_fields=False)
    if name not in UNCHECKED:
        validate_proto_required_fields(message)


def shown(message: Proto) -> dict[str, Any]:
    return MessageToDict(message)


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
        async def fetch() -> tuple[Any, types.AgentCard]:
            card = await A2ACardResolver(self.http, self.options.url).get_agent_card()
            return shown(card), card

        card = await self.steps.run("card", fetch)
        interceptors = []
        if self.options.key and card.security_requirements:
            interceptors = [AuthInterceptor(OneKey(self.options.key))]
        elif self.options.key:
            self.http.headers["Authorization"] = f"Bearer {self.options.key}"

        def client(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=self.http,
                supported_protocol_bindings=[self.options.binding],
                use_client_preference=True,
            )
            return ClientFactory(config).create(card, interceptors)

        self.streaming, self.blocking = client(True), client(False)

    def request(
        self,
        text: str | None = None,
        data: Any = None,
        task: Task | None = None,
        context_id: str = "",
        at_once: bool = False,
        hook: str = "",
    ) -> SendMessageRequest:
        part = {"text": text} if data is None else {"data": data}
        message = ParseDict({"parts": [part], "metadata": self.options.metadata}, Message())
        message.message_id, message.role = str(uuid.uuid4()), Role.ROLE_USER
        message.context_id = context_id
        if task is not None:
            message.task_id, message.context_id = task.id, task.context_id
        request = SendMessageRequest(message=message)
        request.configuration.return_immediately = at_once
        if hook:
            request.configuration.task_push_notification_config.CopyFrom(push_config("", hook))
        return request

    async def send(self, step: str, request: SendMessageRequest, state: TaskState | None) -> Task:
        """Sends without a stream. The answer is a task in the given state."""

        async def action() -> tuple[Any, Task]:
            answers = [answer async for answer in self.blocking.send_message(request)]
            expect(len(answers) == 1, f"{len(answers)} answers")
            expect(answers[0].HasField("task"), f"no task but {shown(answers[0])}")
            task = answers[0].task
            expect(state is None or task.status.state == state, f"unexpected state: {shown(task)}")
            return shown(answers[0]), task

        return await self.steps.run(step, action)

    async def start(self, step: str, seconds: int, hook: str = "") -> Task:
        return await self.send(step, self.request(f"slow {seconds}", at_once=True, hook=hook), None)


def push_config(task_id: str, url: str) -> types.TaskPushNotificationConfig:
    authentication = types.AuthenticationInfo(scheme="Bearer", credentials="s3cret")
    return types.TaskPushNotificationConfig(
        id="c1", task_id=task_id, url=url, token="tok-1", authentication=authentication
    )


def texts(task: Task) -> str:
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def last_state(event: StreamResponse) -> int:
    return event.task.status.state if event.HasField("task") else event.status_update.status.state


class Scenarios:
    """The groups of steps. Each opens its own tasks, so that any of them can be run alone."""

    def __init__(self, session: Session) -> None:
        self.session, self.steps, self.options = session, session.steps, session.options

    async def card(self) -> None:
        """The card was fetched before the first group, but not in the form for readers of 1.0 only."""

        async def strict() -> tuple[Any, None]:
            url = self.options.url + CARD_PATH
            answer = await self.session.http.get(url, headers={"A2A-Version": "1.0"})
            return answer.raise_for_status().json(), None

        await self.steps.run("card_strict", strict)

    async def send(self) -> None:
        request = self.session.request(self.options.text)
        await self.session.send("send", request, TaskState.TASK_STATE_COMPLETED)

    async def stream(self) -> None:
        async def action() -> tuple[Any, None]:
            request = self.session.request(self.options.text)
            events = [event async for event in self.session.streaming.send_message(request)]
            expect(events and events[0].HasField("task"), "the first event is not the task")
            expect(last_state(events[-1]) == TaskState.TASK_STATE_COMPLETED, "the last event is not completed")
            return [shown(event) for event in events], None

        await self.steps.run("stream", action)

    async def data(self) -> None:
        request = self.session.request(data={"n": 1.5, "list": [1, "two", None], "text": self.options.text})
        await self.session.send("data", request, TaskState.TASK_STATE_COMPLETED)

    async def kinds(self) -> None:
        completed = TaskState.TASK_STATE_COMPLETED
        chunks = await self.session.send("chunks", self.session.request("chunks"), completed)
        expect(texts(chunks) == "chunk 1 chunk 2 chunk 3 ", f"unexpected chunks: {shown(chunks)}")
        file = await self.session.send("file", self.session.request("file"), completed)
        expect(file.artifacts[0].parts[0].raw == b"file content", f"unexpected file: {shown(file)}")
        await self.session.send("fail", self.session.request("fail"), TaskState.TASK_STATE_FAILED)
        await self.session.send("reject", self.session.request("reject"), TaskState.TASK_STATE_REJECTED)

        async def message(client: Client) -> tuple[Any, None]:
            answers = [answer async for answer in client.send_message(self.session.request("message"))]
            return [shown(answer) for answer in answers], None

        async def bare() -> tuple[Any, None]:
            answers, _ = await message(self.session.blocking)
            expect("message" in answers[0], f"no bare message: {answers}")
            return answers[0], None

        await self.steps.run("message", bare)
        await self.steps.run("message_stream", lambda: message(self.session.streaming))

        async def stream_chunks() -> tuple[Any, None]:
            request = self.session.request("chunks")
            events = [event async for event in self.session.streaming.send_message(request)]
            updates = [event.artifact_update for event in events if event.HasField("artifact_update")]
            expect([update.append for update in updates] == [False, True, True], "unexpected `append`")
            return [shown(event) for event in events], None

        await self.steps.run("chunks_stream", stream_chunks)

    async def get(self) -> None:
        sent = self.session.request(self.options.text)
        task = await self.session.send("get_open", sent, TaskState.TASK_STATE_COMPLETED)

        async def get(length: int | None) -> tuple[Any, Task]:
            query = types.GetTaskRequest(id=task.id, history_length=length)
            got = await self.session.blocking.get_task(query)
            expect(got.id == task.id and got.context_id == task.context_id, "another task")
            expect(got.artifacts == task.artifacts, "other artifacts than in the answer to send")
            return shown(got), got

        whole = await self.steps.run("get", lambda: get(None))
        expect(any(one.message_id == sent.message.message_id for one in whole.history), "history lacks the message")
        none = await self.steps.run("get_without_history", lambda: get(0))
        expect(not none.history, "history was not asked for")

    async def list(self) -> None:
        context = str(uuid.uuid4())
        opened = []
        for number in range(3):
            request = self.session.request(f"{self.options.text} {number}", context_id=context)
            opened.append((await self.session.send("list_open", request, TaskState.TASK_STATE_COMPLETED)).id)

        async def list_all() -> tuple[Any, None]:
            pages, token = [], ""
            while True:
                query = types.ListTasksRequest(context_id=context, page_size=2, page_token=token)
                page = await self.session.blocking.list_tasks(query)
                pages.append(page)
                token = page.next_page_token
                if not token:
                    break
            ids = [task.id for page in pages for task in page.tasks]
            expect(ids == opened[::-1], f"listed {ids}, opened {opened}")
            expect(all(page.total_size == 3 for page in pages), "unexpected total size")
            expect(not any(task.artifacts for page in pages for task in page.tasks), "artifacts were not asked for")
            return [shown(page) for page in pages], None

        await self.steps.run("list", list_all)

        async def list_completed() -> tuple[Any, None]:
            query = types.ListTasksRequest(
                context_id=context, status=TaskState.TASK_STATE_COMPLETED, include_artifacts=True, history_length=1
            )
            page = await self.session.blocking.list_tasks(query)
            expect(all(task.artifacts for task in page.tasks), "artifacts are missing")
            return shown(page), None

        await self.steps.run("list_completed", list_completed)

    async def ask(self) -> None:
        asking = await self.session.send("ask", self.session.request("ask"), TaskState.TASK_STATE_INPUT_REQUIRED)
        expect(asking.status.message.parts, "the question is missing")
        follow_up = self.session.request("Lugano", task=asking)
        answered = await self.session.send("answer", follow_up, TaskState.TASK_STATE_COMPLETED)
        expect(answered.id == asking.id, "the answer opened another task")
        expect("Lugano" in texts(answered), f"the answer did not arrive: {shown(answered)}")

        async def ask_streaming() -> tuple[Any, None]:
            events = [event async for event in self.session.streaming.send_message(self.session.request("ask"))]
            expect(last_state(events[-1]) == TaskState.TASK_STATE_INPUT_REQUIRED, "the last event does not ask")
            return [shown(event) for event in events], None

        await self.steps.run("ask_stream", ask_streaming)

    async def cancel(self) -> None:
        task = await self.session.start("cancel_open", 30)

        async def cancel() -> tuple[Any, None]:
            got = await self.session.blocking.cancel_task(types.CancelTaskRequest(id=task.id))
            expect(got.status.state == TaskState.TASK_STATE_CANCELED, f"unexpected state: {shown(got)}")
            return shown(got), None

        await self.steps.run("cancel", cancel)
        await self.steps.refused("cancel_again", ("TaskNotCancelableError",), cancel)

    async def subscribe(self) -> None:
        asked = self.session.request("ask", at_once=True)
        task = await self.session.send("subscribe_open", asked, None)

        async def subscribe() -> tuple[Any, None]:
            query = types.SubscribeToTaskRequest(id=task.id)
            events: list[StreamResponse] = []
            async for event in self.session.streaming.subscribe(query):
                events.append(event)
                if len(events) == 1:
                    await self.answer(task)
            expect(events and events[0].HasField("task"), "the first event is not the task")
            expect(last_state(events[-1]) == TaskState.TASK_STATE_COMPLETED, "the last event is not completed")
            return [shown(event) for event in events], None

        await self.steps.run("subscribe", subscribe)
        await self.steps.refused("subscribe_ended", ("UnsupportedOperationError",), subscribe)

    async def answer(self, task: Task) -> None:
        """Answers a task that asks, or will."""

        async def asks() -> tuple[Any, bool]:
            got = await self.session.blocking.get_task(types.GetTaskRequest(id=task.id))
            return shown(got), got.status.state == TaskState.TASK_STATE_INPUT_REQUIRED

        while not await self.steps.run("subscribe_asks", asks):
            await asyncio.sleep(0.05)
        follow_up = self.session.request("Lugano", task=task, at_once=True)
        await self.session.send("subscribe_answer", follow_up, None)

    async def push(self) -> None:
        task = await self.session.send("push_open", self.session.request("ask"), None)
        client, config = self.session.blocking, push_config(task.id, Hook().url)
        which: dict[str, str] = {"task_id": task.id, "id": "c1"}

        async def create() -> tuple[Any, None]:
            made = await client.create_task_push_notification_config(config)
            expect((made.id, made.url) == (config.id, config.url), f"another config: {shown(made)}")
            return shown(made), None

        async def get() -> tuple[Any, None]:
            query = types.GetTaskPushNotificationConfigRequest(**which)
            return shown(await client.get_task_push_notification_config(query)), None

        async def list_ids() -> tuple[Any, list[str]]:
            query = types.ListTaskPushNotificationConfigsRequest(task_id=task.id)
            listed = await client.list_task_push_notification_configs(query)
            return shown(listed), [one.id for one in listed.configs]

        async def delete() -> tuple[Any, None]:
            query = types.DeleteTaskPushNotificationConfigRequest(**which)
            return await client.delete_task_push_notification_config(query), None

        await self.steps.run("push_create", create)
        await self.steps.run("push_get", get)
        expect(await self.steps.run("push_list", list_ids) == ["c1"], "the config is not listed")
        await self.steps.run("push_delete", delete)
        expect(await self.steps.run("push_list_after_delete", list_ids) == [], "the config is still listed")
        await self.steps.run("push_delete_again", delete)

    async def notify(self) -> None:
        hook = Hook()
        task = await self.session.start("notify_open", 1, hook.url)

        def is_last(body: dict[str, Any]) -> bool:
            event = ParseDict(body, StreamResponse())
            return last_state(event) in ENDED

        async def notified() -> tuple[Any, None]:
            received = await hook.until(is_last)
            for one in received:
                expect(one["headers"].get("x-a2a-notification-token") == "tok-1", "the token is missing")
                read("StreamResponse", one["body"])
                event = ParseDict(one["body"], StreamResponse())
                ids = {event.task.id, event.status_update.task_id, event.artifact_update.task_id}
                expect(task.id in ids, "of another task")
            return received, None

        await self.steps.run("notify", notified)

    async def extended(self) -> None:
        async def action() -> tuple[Any, None]:
            card = await self.session.blocking.get_extended_agent_card(types.GetExtendedAgentCardRequest())
            return shown(card), None

        await self.steps.run("extended", action)

    async def errors(self) -> None:
        client, nothing = self.session.blocking, str(uuid.uuid4())

        async def get() -> tuple[Any, None]:
            return shown(await client.get_task(types.GetTaskRequest(id=nothing))), None

        async def send(task: Task) -> tuple[Any, None]:
            request = self.session.request("more", task=task)
            return [shown(answer) async for answer in client.send_message(request)], None

        async def page() -> tuple[Any, None]:
            return shown(await client.list_tasks(types.ListTasksRequest(page_size=1000))), None

        done = await self.session.send("errors_open", self.session.request(self.options.text), None)
        await self.steps.refused("get_unknown", ("TaskNotFoundError",), get)
        await self.steps.refused("send_unknown", ("TaskNotFoundError",), lambda: send(Task(id=nothing)))
        await self.steps.refused("send_ended", ("UnsupportedOperationError",), lambda: send(done))
        await self.steps.refused("list_too_many", ("InvalidParamsError",), page)


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
