// A paid job over /v1 with a client whose types come from the API document.

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Problem = components["schemas"]["HubProblem"] | components["schemas"]["RegistryErrorBody"];

const [hub, operatorKey] = process.argv.slice(2);
if (!hub || !operatorKey) throw new Error("usage: client <hub> <operator key>");

const withKey = (key?: string) =>
  createClient<paths>({
    baseUrl: hub,
    headers: key ? { authorization: `Bearer ${key}` } : {},
  });

/** The data of an answer that must be a success. */
function data<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

async function register(owner: string, skills: components["schemas"]["RegistrySkillMembers"][]) {
  const body = { agent_name: `${owner}'s agent`, owner_id: owner, skills };
  const answer = await withKey().POST("/registry/register", { body });
  const key = data(answer).api_key;
  if (!key) throw new Error("a new agent gets a key");
  return withKey(key);
}

const worker = await register("seller", [{ skill_name: "sum", cost_per_call: 0.25 }]);
const requester = await register("buyer", []);
const operator = withKey(operatorKey);
data(await operator.POST("/v1/operator/grants", { body: { owner: "buyer", amount: 1 } }));
data(await worker.POST("/v1/me/status", { body: { status: "online" } }));

const opened = data(
  await requester.POST("/v1/jobs", {
    params: { header: { "Idempotency-Key": "one" } },
    body: { skill: "sum", input: { numbers: [1, 2] }, budget: 0.5 },
  }),
);

const work = data(await worker.GET("/v1/work", { params: { query: { wait: 10 } } }));
const job = work.jobs[0];
if (job?.id !== opened.id) throw new Error("the worker has another job");
const { numbers } = job.input as { numbers: number[] };
const reported = data(
  await worker.POST("/v1/jobs/{id}/result", {
    params: { path: { id: job.id } },
    body: { epoch: job.epoch, ok: true, output: { sum: numbers.reduce((a, b) => a + b) }, cost: 0.25 },
  }),
);

const done = data(
  await requester.GET("/v1/jobs/{id}", {
    params: { path: { id: opened.id }, query: { wait: 10 } },
  }),
);
const output = done.result?.output as { sum: number } | undefined;
console.log(JSON.stringify({ state: done.state, sum: output?.sum, paid: reported.paid }));
