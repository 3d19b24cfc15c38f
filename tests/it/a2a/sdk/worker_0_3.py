"""An A2A worker with a2a-sdk 0.3.26: JSON-RPC 0.3, streams and push.

The first word of a message decides what the worker does; see `Executor`.
"""

import asyncio
import base64
from typing import Any

import httpx

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCard,
    AgentExtension,
    FilePart,
    FileWithBytes,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
)
from worker_server import OWNER_EXTENSION, Recorder, arguments, bind, serve


def text_part(text: str) -> Part:
    return Part(root=TextPart(text=text))


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
                role=Role.agent,
                parts=[text_part("a bare message")],
            )
            await event_queue.enqueue_event(reply)
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)

        def say(words_said: str) -> Message:
            return updater.new_agent_message([text_part(words_said)])

        if task is None:
            submitted = TaskStatus(state=TaskState.submitted)
            first = Task(id=context.task_id, context_id=context.context_id, status=submitted, history=[message])
            await event_queue.enqueue_event(first)
        elif task.status.state == TaskState.input_required:
            await updater.add_artifact([text_part(f"You said {text}")], artifact_id="answer", last_chunk=True)
            await updater.complete()
            return
        if words[0] == "ask":
            await updater.requires_input(say("Which city?"), final=True)
        elif words[0] == "fail":
            await updater.failed(say("failed as asked"))
        elif words[0] == "reject":
            await updater.reject(say("rejected as asked"))
        elif words[0] == "slow":
            seconds = int(words[1])
            for second in range(seconds):
                await updater.start_work(say(f"working, {second} of {seconds} s"))
                await asyncio.sleep(1)
            await updater.add_artifact([text_part("done slowly")], artifact_id="slow", last_chunk=True)
            await updater.complete()
        elif words[0] == "chunks":
            await updater.start_work()
            for number in range(3):
                await updater.add_artifact(
                    [text_part(f"chunk {number + 1} ")],
                    artifact_id="chunks",
                    append=number > 0,
                    last_chunk=number == 2,
                )
            await updater.complete()
        elif words[0] == "file":
            content = base64.b64encode(b"file content").decode()
            file = FileWithBytes(bytes=content, name="out.txt", mime_type="text/plain")
            await updater.add_artifact([Part(root=FilePart(file=file))], artifact_id="file", last_chunk=True)
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
    options = arguments(__doc__ or "").parse_args()
    listener, url = bind(options.port)
    recorder = Recorder(options.bearer)
    content: dict[str, Any] = {
        "name": options.name,
        "description": "Obeys the first word of a message",
        "version": "1",
        "url": f"{url}/",
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": not options.no_streaming, "pushNotifications": not options.no_push},
        "supportsAuthenticatedExtendedCard": True,
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {"id": "echo", "name": "echo", "description": "Echoes a message, or obeys it", "tags": ["echo"]}
        ],
    }
    if options.bearer:
        content["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        content["security"] = [{"key": []}]
    card = AgentCard.model_validate(content)
    extended = AgentCard.model_validate({**content, "description": "Extended"})

    def with_owner(public: AgentCard) -> AgentCard:
        if not recorder.owner_token:
            return public
        owned = public.model_copy(deep=True)
        owned.capabilities.extensions = [
            AgentExtension(uri=OWNER_EXTENSION, params={"token": recorder.owner_token})
        ]
        return owned

    configs = InMemoryPushNotificationConfigStore()
    handler = DefaultRequestHandler(
        agent_executor=Executor(),
        task_store=InMemoryTaskStore(),
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    app = A2AStarletteApplication(
        agent_card=card,
        http_handler=handler,
        extended_agent_card=extended,
        card_modifier=with_owner,
    )
    serve(recorder, app.build(), listener, url)


if __name__ == "__main__":
    main()
