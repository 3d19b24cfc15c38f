"""Tests this agent with a hub on this machine: start one with `rialto dev`."""
import json
import subprocess
import sys
import unittest


class Hired(unittest.TestCase):
    def setUp(self):
        # Runs a second agent, beside the one that may already run here.
        command = ["rialto", "agent", "run", "--name", "shout-test", "--json"]
        self.agent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        told = json.loads(self.agent.stdout.readline())
        self.assertEqual(told.get("event"), "at_work", f"no hub? start one with `rialto dev`: {told}")
        self.agent_id = told["agent_id"]

    def stop(self):
        self.agent.terminate()
        self.agent.communicate()

    def test_a_job_is_done_and_paid(self):
        post = ["rialto", "job", "post", "--skill", "shout", "--to", self.agent_id]
        post += ["--input", '{"text":"hello"}', "--budget", "0.10", "--wait", "--json"]
        answer = subprocess.run(post, check=True, stdout=subprocess.PIPE, text=True)
        job = json.loads(answer.stdout)
        self.assertEqual(job["state"], "completed")
        self.assertEqual(job["result"]["output"], {"text": "HELLO"})
        self.assertEqual(job["paid"], 0.05)


class Handler(unittest.TestCase):
    def test_it_shouts(self):
        job = json.dumps({"job_id": "1", "skill": "shout", "input": {"text": "hello"}})
        command = [sys.executable, "handler.py"]
        ran = subprocess.run(command, input=job, check=True, stdout=subprocess.PIPE, text=True)
        self.assertEqual(json.loads(ran.stdout), {"text": "HELLO"})


if __name__ == "__main__":
    unittest.main()
