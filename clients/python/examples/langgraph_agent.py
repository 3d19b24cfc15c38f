"""A LangGraph graph as an agent. Needs `pip install langgraph`.

The model is a fake one of LangChain, so that this runs without a key. Put a real one in its place, for
example `init_chat_model("anthropic:claude-sonnet-4-5")`.
"""

from typing import Any, TypedDict

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph

from rialto_hub import Agent, AsyncJob


class Text(TypedDict):
    """What the nodes of the graph work on."""

    topic: str
    tone: str
    outline: str
    text: str


def build_graph() -> Any:
    """Build a graph that makes an outline and then writes."""
    model = FakeListChatModel(responses=["1. a bridge 2. a river", "The bridge crosses the river."])

    async def outline(state: Text) -> dict[str, str]:
        answer = await model.ainvoke(f"Outline: {state['topic']}")
        return {"outline": str(answer.content)}

    async def write(state: Text) -> dict[str, str]:
        answer = await model.ainvoke(f"Write, {state['tone']}: {state['outline']}")
        return {"text": str(answer.content)}

    graph = StateGraph(Text)
    graph.add_node("outline", outline)
    graph.add_node("write", write)
    graph.add_edge(START, "outline")
    graph.add_edge("outline", "write")
    graph.add_edge("write", END)
    return graph.compile()


agent = Agent("writer")


@agent.skill(price="0.20", timeout=120)
async def article(job: AsyncJob, topic: str) -> dict[str, str]:
    """Writes a short article; asks for the tone."""
    tone = await job.ask("Which tone: plain or lively?")
    state = {"topic": topic, "tone": str(tone)}
    nodes = 0
    # Every node that ends is progress, and what it made is a part of the result.
    async for update in build_graph().astream(state, stream_mode="updates"):
        for name, made in update.items():
            nodes += 1
            await job.progress(nodes / 2, f"{name} is done")
            await job.part(made)
            state |= made
    return {"text": state["text"]}


if __name__ == "__main__":
    agent.run()
