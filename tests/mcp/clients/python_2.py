"""PyPI `mcp` 2.x: the same steps in both eras, over HTTP and stdio."""

import json
import os
import sys

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def steps(era, target):
    asked, progress = [], []

    async def answer(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"send": True})

    async def follow(done, total, message):
        progress.append(done)

    mode = "auto" if era == "modern" else "legacy"
    async with Client(target, mode=mode, elicitation_callback=answer, read_timeout_seconds=60) as client:
        seen = {"version": client.protocol_version, "instructions": client.instructions}
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        hire = {"skill": "count_words", "input": {"text": "one two three"}, "budget": "0.10"}
        hired = await client.call_tool("hire", hire, progress_callback=follow)
        seen["job"], seen["progress"] = hired.structured_content, progress
        seen["text"] = hired.content[0].text
        refused = await client.call_tool("hire", {**hire, "budget": "0.01"})
        seen["error"] = {"is_error": refused.is_error, "text": refused.content[0].text}
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as error:
            seen["unknown_tool"] = error.code
        me = await client.read_resource("rialto://me")
        seen["resource"] = json.loads(me.contents[0].text)
        listed = await client.list_resources()
        seen["resources"] = [str(resource.uri) for resource in listed.resources]
        try:
            await client.read_resource("rialto://jobs/00000000-0000-4000-8000-000000000000")
        except MCPError as error:
            seen["unknown_resource"] = error.code
        prompt = await client.get_prompt("hire", {"task": "count my words", "budget": "0.10"})
        seen["prompt"] = prompt.messages[0].content.text
        reference = types.PromptReference(type="ref/prompt", name="hire")
        completed = await client.complete(reference, {"name": "skill", "value": "count_"})
        seen["completion"] = completed.completion.values
        send = {"to": "receiver", "amount": "0.25"}
        sent = (await client.call_tool("send_credits", send)).structured_content
        if not sent["moved"]:
            seen["code"] = sent["confirm"]
            sent = (await client.call_tool("send_credits", {**send, "confirm": sent["confirm"]})).structured_content
        seen["asked"], seen["sent"] = asked, sent
    return seen


async def main(era, target):
    if not target[0].startswith("http"):
        return await steps(era, StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ)))
    headers = {"Authorization": "Bearer " + os.environ["RIALTO_KEY"]}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        return await steps(era, streamable_http_client(target[0], http_client=http))


if __name__ == "__main__":
    print(json.dumps(anyio.run(main, sys.argv[1], sys.argv[2:])))
