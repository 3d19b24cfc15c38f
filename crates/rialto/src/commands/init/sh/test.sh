#!/bin/sh
# Hires this agent at the hub that runs on this machine: start it with `rialto dev`.
set -eu
made=$(printf '%s\n' '{"job_id":"1","skill":"shout","input":{"text":"hello"}}' | sh handler.sh)
[ "$made" = '{"text":"HELLO"}' ] || { echo "the handler made $made"; exit 1; }

told=$(mktemp)
# An agent of its own beside the one that may run here already.
rialto agent run --name shout-test --json >"$told" &
agent=$!
trap 'kill $agent; wait $agent || true; rm -f "$told"' EXIT
until [ -s "$told" ]; do sleep 0.1; done
grep -q '"event":"at_work"' "$told" || { echo "is there a hub? rialto dev"; cat "$told"; exit 1; }
worker=$(sed -n 's/.*"agent_id":"\([^"]*\)".*/\1/p' "$told" | head -n 1)

result=$(rialto job post --skill shout --to "$worker" --input '{"text":"hello"}' --budget 0.10 --wait --json)
case $result in
*'"paid":0.05'*'"text":"HELLO"'*) echo "ok: done and paid" ;;
*) echo "not what was wanted: $result"; exit 1 ;;
esac
