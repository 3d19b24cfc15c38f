"""The tools that the official conformance suite calls, as an MCP server of their own.

`server.py` speaks over stdio, as `rialto agent run --mcp` starts it; `server.py --http` prints its URL
and serves there, for runs of the suite against this server alone.
"""

import asyncio
import base64
import json
import socket
import struct
import sys
import zlib

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged


def png():
    """One red pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b"")]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)).decode()


def wav():
    """Eight samples of silence."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    data = struct.pack("<4sI", b"data", 8) + b"\x80" * 8
    body = b"WAVE" + form + data
    return base64.b64encode(struct.pack("<4sI", b"RIFF", len(body)) + body).decode()


def text(words):
    return {"type": "text", "text": words}


def resource(uri, mime, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


IMAGE = {"type": "image", "data": png(), "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": wav(), "mimeType": "audio/wav"}
EMBEDDED = resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
MIXED = resource(
    "test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123})
)

NOTHING = {"type": "object", "properties": {}}
GREETING = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COMPUTATION = {
    "type": "object",
    "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}},
    "required": ["seconds"],
}
# Every keyword that a careless server drops from a schema.
CONTACT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def compute(context, arguments):
    await anyio.sleep(arguments["seconds"])
    return [text(f"computed {arguments.get('label', '')}".strip())]


async def progress(context, arguments):
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return [text("progress reported")]


async def fail_late(context, arguments):
    await anyio.sleep(1)
    raise ValueError("the job failed, as it always does")


async def fail_at_once(context, arguments):
    raise ValueError("This tool intentionally returns an error for testing")


def answering(*blocks):
    async def answer(context, arguments):
        return list(blocks)

    return answer


async def greet(context, arguments):
    return [text(f"Hello, {arguments['name']}!")]


CHANGES = InMemorySubscriptionBus()
# A task that nothing refers to may be collected.
CHANGING = []


ADDED = ("added", "Comes and goes", NOTHING, answering(text("added")))


async def change_tools(context, arguments):
    """Adds and removes a tool, again every second for a while: the suite calls this for one check after the other,
    and for the hub the same call within two minutes is one call."""

    async def go_on():
        for _ in range(6):
            await anyio.sleep(1)
            await change_once()

    await change_once()
    CHANGING.append(asyncio.create_task(go_on()))
    return [text("the tools have changed")]


async def change_once():
    if ADDED in TOOLS:
        TOOLS.remove(ADDED)
    else:
        TOOLS.append(ADDED)
    await CHANGES.publish(ToolsListChanged())


# Name, description, input schema, implementation.
TOOLS = [
    ("test_simple_text", "Answers with text", NOTHING, answering(text("This is a simple text response for testing."))),
    ("test_image_content", "Answers with an image", NOTHING, answering(IMAGE)),
    ("test_audio_content", "Answers with sound", NOTHING, answering(AUDIO)),
    ("test_embedded_resource", "Answers with a resource", NOTHING, answering(EMBEDDED)),
    (
        "test_multiple_content_types",
        "Answers with text, an image and a resource",
        NOTHING,
        answering(text("Multiple content types test:"), IMAGE, MIXED),
    ),
    ("test_error_handling", "Fails", NOTHING, fail_at_once),
    ("test_tool_with_progress", "Reports progress", NOTHING, progress),
    ("test_logging_tool", "Works in silence", NOTHING, answering(text("worked"))),
    ("test_streaming_elicitation", "Asks nobody", NOTHING, answering(text("nobody was asked"))),
    ("json_schema_2020_12_tool", "Has a schema with many keywords", CONTACT, answering(text("contact"))),
    ("greet", "Greets", GREETING, greet),
    ("slow_compute", "Takes its time", COMPUTATION, compute),
    ("failing_job", "Fails after a second", NOTHING, fail_late),
    ("test_trigger_tool_change", "Changes the tools", NOTHING, change_tools),
]


async def list_tools(context, params):
    tools = [types.Tool(name=name, description=words, input_schema=schema) for name, words, schema, _ in TOOLS]
    return types.ListToolsResult(tools=tools)


async def call_tool(context, params):
    implementations = {name: implementation for name, _, _, implementation in TOOLS}
    try:
        blocks, failed = await implementations[params.name](context, params.arguments or {}), False
    except ValueError as error:
        blocks, failed = [text(str(error))], True
    return types.CallToolResult.model_validate({"content": blocks, "isError": failed})


SERVER = Server(
    "suite",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(CHANGES),
)


async def over_stdio():
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


def over_http():
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(SERVER.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["--http"]:
        over_http()
    else:
        anyio.run(over_stdio)
