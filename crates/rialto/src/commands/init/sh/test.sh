#!/bin/sh
# Tests this agent with a hub on this machine: start one with `rialto dev`.
set -eu
made=$(printf '%s\n' '{"job_id":"1","skill":"shout","input":{"text":"hello"}}' | sh handler.sh)
[ "$made" = '{"text":"HELLO"}' ] || { echo "unexpected handler output: $made"; exit 1; }

told=$(mktemp)
# Runs a second agent, beside the one that may already run here.
rialto agent run --name shout-test --json >"$told" &
agent=$!
trap 'kill $agent; wait $agent || true; rm -f "$told"' EXIT
until [ -s "$told" ]; do sleep 0.1; done
grep -q '"event":"at_work"' "$told" || { echo "no hub? start one with 'rialto dev'"; cat "$told"; exit 1; }
worker=$(sed -n 's/.*"agent_id":"\([^"]*\)".*/\1/p' "$told" | head -n 1)

result=$(rialto job post --skill shout --to "$worker" --input '{"text":"hello"}' --budget 0.10 --wait --json)
case $result in
*'"paid":0.05'*'"text":"HELLO"'*) echo "ok: done and paid" ;;
*) echo "unexpected result: $result"; exit 1 ;;
esac
