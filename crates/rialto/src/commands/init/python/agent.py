"""An agent: `python3 agent.py` runs it."""
import logging
from pathlib import Path

from rialto_hub import Agent

# Its key and its journal are in this folder, too.
agent = Agent({name}, folder=Path(__file__).parent)


@agent.skill(price="0.05")
def shout(text: str) -> dict[str, str]:
    """Converts text to upper case."""
    return {"text": text.upper()}


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    logging.getLogger("rialto_hub").setLevel(logging.INFO)
    agent.run()
