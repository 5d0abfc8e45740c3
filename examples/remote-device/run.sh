#!/usr/bin/env bash
# Two machines on one: a yaya at "home", and a "phone" with a data directory and a
# key of its own that enrols by a code, watches an agent, loses its connection,
# resumes, and is revoked.
#
# YAYA names the binary (default: yaya from PATH).
set -euo pipefail
yaya=${YAYA:-yaya}
here=$(cd "$(dirname "$0")" && pwd)
for program in "$yaya" go; do
  command -v "$program" >/dev/null || { echo "run.sh: it needs $program, which is not a program on PATH (YAYA names yaya's)" >&2; exit 1; }
done
work=$(mktemp -d)
daemon= watcher=
cleanup() {
  [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
  [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" || true; }
  rm -rf "$work"
}
trap cleanup EXIT
home() { "$yaya" --data-dir "$work/home" --config-dir "$work/home-config" "$@"; }
phone() { "$yaya" --data-dir "$work/phone" --config-dir "$work/phone-config" "$@"; }
wait_for() { # wait_for PATTERN FILE
  for _ in $(seq 1 300); do
    if grep -q -- "$1" "$2" 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  echo "\"$1\" does not come:" >&2; cat "$2" >&2; return 1
}

# A model that works offline and takes its time.
words="one two three four five six seven eight nine ten eleven twelve"
home config set plugin.llm_echo.script "{\"steps\":[{\"text\":\"$words\",\"delay_ms\":150}]}" >/dev/null

"$yaya" --data-dir "$work/home" --config-dir "$work/home-config" serve --listen 127.0.0.1:0 >"$work/serve.log" 2>&1 &
daemon=$!
wait_for "MCP endpoint" "$work/serve.log"
url=$(sed -n 's#.*MCP endpoint *\(http://[^/]*\)/mcp.*#\1#p' "$work/serve.log")

code=$(home device invite --label "Phone" --json | sed -n 's/.*"code": "\(.*\)".*/\1/p')
phone connect "$url" --code "$code" --device phone
home device list

(cd "$here/../.." && go build -buildvcs=false -o "$work/watch" ./examples/remote-device)
"$work/watch" "$work"/phone/keys/remotes/*.json "count to twelve" >"$work/watch.log" 2>&1 &
watcher=$!
wait_for "ready to be thrown out" "$work/watch.log"
grep -q "connection: there again" "$work/watch.log"
grep -q "whole: \"$words\"" "$work/watch.log"
grep -q "lobby: register_agent" "$work/watch.log"

began=$(date +%s)
home device revoke phone --reason "example"
wait "$watcher"
watcher=
[ $(($(date +%s) - began)) -le 5 ]
cat "$work/watch.log"
home audit --event 'device_*'
echo "done"
