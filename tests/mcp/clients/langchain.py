"""PyPI `langchain-mcp-adapters`: its tools without a model, over HTTP and stdio."""

import asyncio
import json
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


def connection(target):
    if not target[0].startswith("http"):
        return {"transport": "stdio", "command": target[0], "args": target[1:], "env": dict(os.environ)}
    headers = {"Authorization": "Bearer " + os.environ["RIALTO_KEY"]}
    return {"transport": "streamable_http", "url": target[0], "headers": headers}


async def main(target):
    tools = await MultiServerMCPClient({"rialto": connection(target)}).get_tools()
    hire = next(tool for tool in tools if tool.name == "hire")
    budgets = {"hired": "0.10", "refused": "0.01"}
    seen = {"tools": [tool.name for tool in tools]}
    for name, budget in budgets.items():
        call = {"skill": "count_words", "input": {"text": "one two three"}, "budget": budget}
        answer = await hire.ainvoke({"type": "tool_call", "id": name, "name": "hire", "args": call})
        seen[name] = {"status": answer.status, "text": answer.content[0]["text"]}
    return seen


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[2:]))))
