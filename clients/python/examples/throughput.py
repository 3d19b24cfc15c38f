"""Compares an agent that does nothing with a loop over the same calls: `python throughput.py`.

Prints jobs per second of both and their ratio, at a hub that runs (`rialto dev`). The loop takes up jobs
and reports results, and that is all: no journal, no checks, no questions.
"""

import argparse
import asyncio
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from rialto_hub import Agent, AsyncHub, RetryPolicy

# A hub limits the writes of one key; with the limits of `rialto dev` this waits for it.
PATIENT = RetryPolicy(max_attempts=20)


async def post(hub: AsyncHub, skill: str, count: int, at_once: int) -> float:
    """Post jobs, so many at a time, and return the seconds until the last has ended."""
    places = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with places:
            job = await hub.hire(skill, {"n": 1}, budget=0)
            if job.state != "completed":
                raise RuntimeError(f"the job is {job.state}: {job.failure_reason}")

    began = time.monotonic()
    await asyncio.gather(*(one() for _ in range(count)))
    return time.monotonic() - began


async def loop_by_hand(hub: AsyncHub, concurrency: int) -> None:
    """Take up jobs and report their results, without anything that makes it safe."""
    places, tasks = asyncio.Semaphore(concurrency), set[asyncio.Task[None]]()
    known: set[str] = set()

    async def do(item: Any) -> None:
        async with places:
            await hub.submit_result(item.id, output={"n": 1}, epoch=item.epoch)

    while True:
        work = await hub.work(wait=25, known=sorted(known)[-150:])
        known -= {one for one in known if one.split(".")[0] in work.gone}
        for item in work.jobs:
            known.add(f"{item.id}.{item.epoch}")
            task = asyncio.create_task(do(item))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def with_loop(url: str | None, skill: str, work: Callable[[], Awaitable[float]]) -> float:
    """Run the loop beside some work."""
    async with AsyncHub(url, key="") as anyone:
        name = f"loop-{uuid.uuid4().hex[:8]}"
        skills: Any = [{"skill_name": skill, "cost_per_call": 0}]
        registered = await anyone.register(name, name, skills, as_new=True)
    async with AsyncHub(url, key=registered.api_key, retry=PATIENT) as hub:
        await hub.set_status("online")
        looping = asyncio.create_task(loop_by_hand(hub, 4))
        try:
            return await work()
        finally:
            looping.cancel()
            await hub.unregister()


async def with_agent(url: str | None, skill: str, work: Callable[[], Awaitable[float]]) -> float:
    """Run an agent beside some work."""
    started, stop = asyncio.Event(), asyncio.Event()

    def on_event(event: Any) -> None:
        if event.kind == "started":
            started.set()

    agent = Agent(f"agent-{uuid.uuid4().hex[:8]}", hub=url, on_event=on_event)

    @agent.skill(skill, price=0)
    async def nothing(n: int) -> dict[str, int]:
        return {"n": n}

    working = asyncio.create_task(agent.run_async(stop))
    await started.wait()
    try:
        return await work()
    finally:
        stop.set()
        await working


async def main() -> None:
    """Measure both, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hub", help="address of the hub")
    parser.add_argument("--jobs", type=int, default=300, help="jobs of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each")
    parser.add_argument("--at-once", type=int, default=16, help="jobs that are open at a time")
    given = parser.parse_args()
    async with AsyncHub(given.hub, key="") as anyone:
        name = f"boss-{uuid.uuid4().hex[:8]}"
        boss = await anyone.register(name, name, as_new=True)
    rates: dict[str, list[float]] = {"loop": [], "agent": []}
    async with AsyncHub(given.hub, key=boss.api_key, retry=PATIENT) as hub:
        for number in range(given.rounds):
            for kind, run in (("loop", with_loop), ("agent", with_agent)):
                skill = f"nothing-{kind}-{number}-{uuid.uuid4().hex[:8]}"

                async def work(skill: str = skill) -> float:
                    await post(hub, skill, given.jobs // 10, given.at_once)
                    return await post(hub, skill, given.jobs, given.at_once)

                rates[kind].append(given.jobs / await run(given.hub, skill, work))
    medians = {kind: statistics.median(values) for kind, values in rates.items()}
    for kind, rate in medians.items():
        print(f"{kind:6} {rate:8.1f} jobs/s   {[round(value, 1) for value in rates[kind]]}")
    print(f"ratio  {medians['loop'] / medians['agent']:8.2f}   (loop / agent; at most 2 is wanted)")


if __name__ == "__main__":
    asyncio.run(main())
