"""PyPI `mcp` 1.x: the old era, over HTTP and stdio."""

import json
import os
import sys

import anyio
import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


async def steps(read, write):
    asked, progress = [], []

    async def answer(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"send": True})

    async def follow(done, total, message):
        progress.append(done)

    async with ClientSession(read, write, elicitation_callback=answer) as client:
        opened = await client.initialize()
        seen = {"version": opened.protocolVersion, "instructions": opened.instructions}
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        hire = {"skill": "count_words", "input": {"text": "one two three"}, "budget": "0.10"}
        hired = await client.call_tool("hire", hire, progress_callback=follow)
        seen["job"], seen["progress"] = hired.structuredContent, progress
        seen["text"] = hired.content[0].text
        refused = await client.call_tool("hire", {**hire, "budget": "0.01"})
        seen["error"] = {"is_error": refused.isError, "text": refused.content[0].text}
        try:
            await client.call_tool("no_such_tool", {})
        except McpError as error:
            seen["unknown_tool"] = error.error.code
        me = await client.read_resource(AnyUrl("rialto://me"))
        seen["resource"] = json.loads(me.contents[0].text)
        listed = await client.list_resources()
        seen["resources"] = [str(resource.uri) for resource in listed.resources]
        try:
            await client.read_resource(AnyUrl("rialto://jobs/00000000-0000-4000-8000-000000000000"))
        except McpError as error:
            seen["unknown_resource"] = error.error.code
        prompt = await client.get_prompt("hire", {"task": "count my words", "budget": "0.10"})
        seen["prompt"] = prompt.messages[0].content.text
        reference = types.PromptReference(type="ref/prompt", name="hire")
        completed = await client.complete(reference, {"name": "skill", "value": "count_"})
        seen["completion"] = completed.completion.values
        send = {"to": "receiver", "amount": "0.25"}
        sent = (await client.call_tool("send_credits", send)).structuredContent
        if not sent["moved"]:
            seen["code"] = sent["confirm"]
            sent = (await client.call_tool("send_credits", {**send, "confirm": sent["confirm"]})).structuredContent
        seen["asked"], seen["sent"] = asked, sent
    return seen


async def main(target):
    if not target[0].startswith("http"):
        server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            return await steps(read, write)
    headers = {"Authorization": "Bearer " + os.environ["RIALTO_KEY"]}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        async with streamable_http_client(target[0], http_client=http) as (read, write, _):
            return await steps(read, write)


if __name__ == "__main__":
    print(json.dumps(anyio.run(main, sys.argv[2:])))
