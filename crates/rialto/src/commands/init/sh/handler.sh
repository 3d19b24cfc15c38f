#!/bin/sh
# Handles one job: reads it from standard input, writes the result to standard output.
read -r job                               # one line of JSON: job_id, skill, input, requester, budget, deadline
echo "a job of ${#job} characters" >&2    # the job's log
text=$(printf %s "$job" | sed 's/.*"input":{"text": *"\([^"\\]*\)"}.*/\1/')
[ "$text" = "$job" ] && exit 75           # too complex for sed: try another worker
printf '{"text":"%s"}' "$(printf %s "$text" | tr '[:lower:]' '[:upper:]')"
# Exit status 0: done. 75: try another worker. Anything else: failed.
