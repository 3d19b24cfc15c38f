"""An A2A worker with a2a-sdk 1.3.0: JSON-RPC and HTTP+JSON, streams, push, and 0.3 on request.

The first word of a message decides what the worker does; see `Executor`.
"""

import asyncio

import httpx
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import AgentCard, Message, Part, Role, Task, TaskState, TaskStatus
from worker_server import OWNER_EXTENSION, Recorder, arguments, bind, serve


class Executor(AgentExecutor):
    """Obeys the first word: chunks, ask, slow N, fail, reject, message, file; else echoes all parts."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, task = context.message, context.current_task
        if message is None or context.task_id is None or context.context_id is None:
            raise ValueError("a request without message, task id or context id")
        text = context.get_user_input()
        words = text.split() or [""]
        if words[0] == "message" and task is None:
            reply = Message(
                message_id=f"{message.message_id}-reply",
                context_id=context.context_id,
                role=Role.ROLE_AGENT,
                parts=[Part(text="a bare message")],
            )
            await event_queue.enqueue_event(reply)
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        def say(words_said: str) -> Message:
            return updater.new_agent_message([Part(text=words_said)])

        if task is None:
            submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            first = Task(id=context.task_id, context_id=context.context_id, status=submitted, history=[message])
            await event_queue.enqueue_event(first)
        elif task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
            await updater.add_artifact([Part(text=f"You said {text}")], artifact_id="answer", last_chunk=True)
            await updater.complete()
            return
        if words[0] == "ask":
            await updater.requires_input(say("Which city?"))
        elif words[0] == "fail":
            await updater.failed(say("failed as asked"))
        elif words[0] == "reject":
            await updater.reject(say("rejected as asked"))
        elif words[0] == "slow":
            seconds = int(words[1])
            for second in range(seconds):
                await updater.start_work(say(f"working, {second} of {seconds} s"))
                await asyncio.sleep(1)
            await updater.add_artifact([Part(text="done slowly")], artifact_id="slow", last_chunk=True)
            await updater.complete()
        elif words[0] == "chunks":
            await updater.start_work()
            for number in range(3):
                await updater.add_artifact(
                    [Part(text=f"chunk {number + 1} ")],
                    artifact_id="chunks",
                    append=number > 0,
                    last_chunk=number == 2,
                )
            await updater.complete()
        elif words[0] == "file":
            file = Part(raw=b"file content", filename="out.txt", media_type="text/plain")
            await updater.add_artifact([file], artifact_id="file", last_chunk=True)
            await updater.complete()
        else:
            await updater.start_work()
            await updater.add_artifact(list(message.parts), artifact_id="echo", last_chunk=True)
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.task_id is None or context.context_id is None:
            raise ValueError("a request without task id or context id")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--compat", action="store_true", help="also serves 0.3")
    parser.add_argument("--bindings", default="JSONRPC,HTTP+JSON", help="those in the card, in this order")
    options = parser.parse_args()
    listener, url = bind(options.port)
    recorder = Recorder(options.bearer)
    interfaces = [
        {"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}
        for binding in options.bindings.split(",")
    ]
    if options.compat:
        interfaces.append({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"})
    content = {
        "name": options.name,
        "description": "Obeys the first word of a message",
        "version": "1",
        "supportedInterfaces": interfaces,
        "capabilities": {
            "streaming": not options.no_streaming,
            "pushNotifications": not options.no_push,
            "extendedAgentCard": True,
        },
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {"id": "echo", "name": "echo", "description": "Echoes a message, or obeys it", "tags": ["echo"]}
        ],
    }
    if options.bearer:
        content["securitySchemes"] = {"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
        content["securityRequirements"] = [{"schemes": {"key": {"list": []}}}]
    card = ParseDict(content, AgentCard())
    extended = ParseDict({**content, "description": "Extended"}, AgentCard())

    async def with_owner(public: AgentCard) -> AgentCard:
        if not recorder.owner_token:
            return public
        owned = AgentCard()
        owned.CopyFrom(public)
        extension = owned.capabilities.extensions.add(uri=OWNER_EXTENSION)
        extension.params.update({"token": recorder.owner_token})
        return owned

    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Executor(),
        task_store=InMemoryTaskStore(),
        agent_card=card,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
        extended_agent_card=extended,
    )
    routes = [
        *create_agent_card_routes(card, card_modifier=with_owner),
        *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=options.compat),
        *create_rest_routes(handler, enable_v0_3_compat=options.compat),
    ]
    serve(recorder, Starlette(routes=routes), listener, url)


if __name__ == "__main__":
    main()
