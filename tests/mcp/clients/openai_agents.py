"""PyPI `openai-agents`: an agent whose model is a fixed script, over HTTP and stdio."""

import asyncio
import json
import os
import sys

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


class Script(Model):
    """Hires, hires for too little, and repeats what the tools said."""

    def __init__(self):
        self.tools, self.outputs = [], []

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):
        self.tools = [tool.name for tool in tools]
        items = [] if isinstance(input, str) else input
        self.outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
        budgets = ["0.10", "0.01"]
        if len(self.outputs) < len(budgets):
            call = {
                "skill": "count_words",
                "input": {"text": "one two three"},
                "budget": budgets[len(self.outputs)],
            }
            name = f"call-{len(self.outputs)}"
            said = ResponseFunctionToolCall(
                type="function_call", call_id=name, name="hire", arguments=json.dumps(call)
            )
        else:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            said = ResponseOutputMessage(
                id="last", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    async def stream_response(self, *args, **kwargs):
        raise NotImplementedError("the script is not streamed")
        yield


def server(target):
    if not target[0].startswith("http"):
        params = {"command": target[0], "args": target[1:], "env": dict(os.environ)}
        return MCPServerStdio(name="rialto", client_session_timeout_seconds=60, params=params)
    headers = {"Authorization": "Bearer " + os.environ["RIALTO_KEY"]}
    params = {"url": target[0], "headers": headers}
    return MCPServerStreamableHttp(name="rialto", client_session_timeout_seconds=60, params=params)


async def main(target):
    set_tracing_disabled(True)
    script = Script()
    async with server(target) as rialto:
        agent = Agent(name="buyer", model=script, mcp_servers=[rialto])
        ended = await Runner.run(agent, "count my words")
    return {"tools": script.tools, "outputs": script.outputs, "final": ended.final_output}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[2:]))))
