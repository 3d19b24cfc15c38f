// Tests this agent with a hub on this machine: start one with `rialto dev`.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";

test("the handler shouts", () => {
  const job = JSON.stringify({ job_id: "1", skill: "shout", input: { text: "hello" } });
  const made = execFileSync(process.execPath, ["dist/handler.js"], { input: job, stdio: "pipe" });
  assert.deepEqual(JSON.parse(made.toString()), { text: "HELLO" });
});

test("a job is done and paid", async () => {
  // Runs a second agent, beside the one that may already run here.
  const run = ["agent", "run", "--name", "shout-test", "--json"];
  const agent = spawn("rialto", run, { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const lines = createInterface({ input: agent.stdout });
    const first: string = await new Promise((resolve) => lines.once("line", resolve));
    const told = JSON.parse(first);
    assert.equal(told.event, "at_work", `no hub? start one with 'rialto dev': ${first}`);
    const post = ["job", "post", "--skill", "shout", "--to", told.agent_id];
    post.push("--budget", "0.10", "--wait", "--json");
    const answer = execFileSync("rialto", [...post, "--input", '{"text":"hello"}']);
    const job = JSON.parse(answer.toString());
    assert.equal(job.state, "completed");
    assert.deepEqual(job.result.output, { text: "HELLO" });
    assert.equal(job.paid, 0.05);
  } finally {
    agent.kill("SIGTERM");
    await new Promise((resolve) => agent.once("exit", resolve));
  }
});
