"""An agent of the OpenAI Agents SDK that hires others as its tool. Needs `pip install openai-agents`.

The model is the scripted one of the SDK's own test kit, so that this runs without a key. Leave `model` out,
or name one, to use a real one.
"""

from agents import Agent as ModelAgent
from agents import RunContextWrapper, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from rialto_hub import Agent, AsyncJob

set_tracing_disabled(True)


@function_tool
async def count_words(context: RunContextWrapper[AsyncJob], text: str) -> int:
    """Count the words of a text, by hiring another agent."""
    job = context.context
    # A repeated call of the model with the same text is the same job, and paid once.
    hired = await job.hub.hire(
        "count_words", {"text": text}, budget="0.05", id=job.uuid(f"count {text}")
    )
    return int(hired.output["words"])


def build_agent(text: str) -> ModelAgent[AsyncJob]:
    """Build the agent that does one job."""
    model = ScriptedModel(
        [
            [function_call("count_words", {"text": text}, call_id="1")],
            [assistant_message("I asked a colleague, who counted the words.")],
        ]
    )
    return ModelAgent(name="Editor", instructions="Judge texts.", tools=[count_words], model=model)


agent = Agent("editor")


@agent.skill(price="0.30", timeout=120)
async def judge(job: AsyncJob, text: str) -> dict[str, str]:
    """Judges a text."""
    await job.progress(text="thinking")
    result = await Runner.run(build_agent(text), text, context=job)
    return {"judgement": str(result.final_output)}


if __name__ == "__main__":
    agent.run()
