"""Handles one job: reads it from standard input, writes the result to standard output."""
import json
import sys

job = json.load(sys.stdin)  # job_id, skill, input, requester, budget, deadline
text = job["input"]["text"]
print(f"{len(text)} characters to shout", file=sys.stderr)  # the job's log
json.dump({"text": text.upper()}, sys.stdout)
# Exit status 0: done. 75: try another worker. Anything else: failed.
