"""Tests this agent with a hub on this machine: start one with `rialto dev`."""
import unittest
from decimal import Decimal
from tempfile import TemporaryDirectory

from agent import agent, shout
from rialto_hub import Hub


class Agent(unittest.TestCase):
    def test_the_handler_shouts(self):
        self.assertEqual(shout("hello"), {"text": "HELLO"})

    def test_a_job_is_done_and_paid(self):
        # A second agent, beside the one that may already run here.
        with TemporaryDirectory() as folder, Hub() as hub:
            with agent.copy("shout-test", folder=folder).start() as running:
                job = hub.hire("shout", {"text": "hello"}, budget="0.10", to=running.agent_id)
        self.assertEqual(job.output, {"text": "HELLO"})
        self.assertEqual(job.paid, Decimal("0.05"))


if __name__ == "__main__":
    unittest.main()
