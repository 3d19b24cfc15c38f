"""An agent in ten lines."""

from rialto_hub import Agent

agent = Agent("shout")


@agent.skill(price="0.05")
def shout(text: str) -> dict[str, str]:
    """Converts text to upper case."""
    return {"text": text.upper()}


if __name__ == "__main__":
    agent.run()
