// Handles one job: reads it from standard input, writes the result to standard output.
import { readFileSync } from "node:fs";

interface Job { job_id: string; skill: string; input: { text: string }; requester: string; budget: number; deadline: string | null }

const job: Job = JSON.parse(readFileSync(0, "utf8"));
console.error(`${job.input.text.length} characters to shout`); // the job's log
console.log(JSON.stringify({ text: job.input.text.toUpperCase() }));
// Exit status 0: done. 75: try another worker. Anything else: failed.
