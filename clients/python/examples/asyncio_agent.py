"""An agent on a plain event loop, beside other work: it asks, tells how far it is, and hands over parts."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from rialto_hub import Agent, Answer, AsyncJob, Part, Progress, Question, Result

agent = Agent("letters", concurrency=8)


@agent.skill(price="0.05")
async def spell(text: str) -> AsyncGenerator[Any, Answer]:
    """Spells a text, letter by letter."""
    answer = yield Question("upper or lower case?")
    spelled = text.upper() if answer.text == "upper" else text.lower()
    for place, letter in enumerate(spelled):
        yield Progress(place / len(spelled))
        yield Part({"letter": letter}, append=place > 0)
    yield Result({"text": "-".join(spelled)})


@agent.skill(price="0.05", timeout=10)
async def count(job: AsyncJob, texts: list[str]) -> dict[str, int]:
    """Counts the words of several texts, which it gives to another agent at the same time."""
    jobs = await asyncio.gather(
        *(
            # The same id in every run of this job, so that none is paid twice.
            job.hub.hire("count_words", {"text": text}, budget="0.05", id=job.uuid(f"text {place}"))
            for place, text in enumerate(texts)
        )
    )
    return {"words": sum(hired.output["words"] for hired in jobs)}


async def main() -> None:
    """Work until the program is cancelled, beside whatever else it does."""
    await agent.run_async()


if __name__ == "__main__":
    agent.run()
