"""A client with strands-agents 1.62.0, which speaks A2A 0.3 and needs no model.

`strands_client.py URL KEY TEXT` prints one JSON line, and is content if the answer is the text, with
events before it.
"""

import argparse
import asyncio
import json
import sys
from typing import Any

import httpx
from a2a.client import ClientConfig
from strands.agent.a2a_agent import A2AAgent


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="the base URL of an agent")
    parser.add_argument("key", help="the caller's key, may be empty")
    parser.add_argument("text", help="the message")
    options = parser.parse_args()
    config = None
    if options.key:
        headers = {"Authorization": f"Bearer {options.key}"}
        config = ClientConfig(httpx_client=httpx.AsyncClient(headers=headers, timeout=60))
    agent = A2AAgent(options.url, client_config=config, timeout=60)
    events, result = 0, None
    async for event in agent.stream_async(options.text):
        events += "result" not in event
        result = event.get("result", result)
    if result is None:
        sys.exit("the agent did not answer")
    blocks: list[Any] = result.message["content"]
    text = "".join(block.get("text", "") for block in blocks)
    is_whole = text == options.text and result.stop_reason == "end_turn" and events > 0
    told = {"text": text, "stop": result.stop_reason, "events": events, "name": agent.name}
    print(json.dumps({"step": "answer", "ok": is_whole, "got": told}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
