#!/bin/sh
# Starts the servers that everybody has as their documentation says, by npx and uvx,
# with an empty cache, all at once behind one yaya in its default configuration, and
# prints how long each took until it was ready, and its restarts. It needs the packages'
# registries, so it is no part of make test.
#
#   internal/peers/cold.sh YAYA [LOAD]
#
# YAYA is the binary, LOAD a number of processes that keep the machine busy meanwhile.
# The registries, a proxy and such come from the environment, as a user has them.
set -eu
yaya=$1 load=${2:-0}
dir=$(mktemp -d)
burners=
finish() {
  kill $daemon $burners 2>/dev/null || :
  wait
  rm -rf "$dir"
}
daemon=
trap finish EXIT
trap 'exit 1' INT TERM

export HOME="$dir" XDG_CACHE_HOME="$dir/cache" npm_config_cache="$dir/npm" UV_CACHE_DIR="$dir/uv" UV_TOOL_DIR="$dir/tools"
mkdir "$dir/files"
git init -q "$dir/repository"
server() { # name command args…
  name=$1 command=$2
  shift 2
  args=
  for a; do args="$args${args:+,}\"$a\""; done
  printf '%s"%s":{"command":"%s","args":[%s]}' "$comma" "$name" "$command" "$args"
  comma=,
}
{
  comma=
  printf '{"mcpServers":{'
  server everything npx -y @modelcontextprotocol/server-everything
  server filesystem npx -y @modelcontextprotocol/server-filesystem "$dir/files"
  server memory npx -y @modelcontextprotocol/server-memory
  server thinking npx -y @modelcontextprotocol/server-sequential-thinking
  server playwright npx -y @playwright/mcp@latest --headless
  server devtools npx -y chrome-devtools-mcp@latest --headless
  server context7 npx -y @upstash/context7-mcp
  server time uvx mcp-server-time
  server git uvx mcp-server-git --repository "$dir/repository"
  server fetch uvx mcp-server-fetch
  printf '}}'
} >"$dir/servers.json"

i=0
while [ "$i" -lt "$load" ]; do
  (while :; do :; done) &
  burners="$burners $!"
  i=$((i + 1))
done
# No function: $! is to be the daemon's own.
"$yaya" --data-dir "$dir/d" --config-dir "$dir/c" serve --listen 127.0.0.1:0 --mcp-config "$dir/servers.json" >"$dir/log" 2>&1 &
daemon=$!
begin=$(date +%s)
echo "server state seconds restarts"
seen=' '
while [ $(($(date +%s) - begin)) -lt 900 ]; do
  kill -0 $daemon 2>/dev/null || { cat "$dir/log"; exit 1; }
  now=$(($(date +%s) - begin))
  "$yaya" --data-dir "$dir/d" --config-dir "$dir/c" mcp list --json >"$dir/list" 2>/dev/null || { sleep 1; continue; }
  python3 - "$dir/list" >"$dir/states" <<'PY'
import json, sys

for s in json.load(open(sys.argv[1]))["servers"]:
    print(s["id"], s["state"], s.get("restarts", 0))
PY
  waiting=0
  [ -s "$dir/states" ] || waiting=1
  while read -r name state restarts; do
    case "$seen" in *" $name "*) continue ;; esac
    if [ "$state" = ready ]; then
      echo "$name $state $now $restarts"
      seen="$seen$name "
    else
      waiting=1
    fi
  done <"$dir/states"
  [ "$waiting" = 1 ] || exit 0
  sleep 1
done
echo "not ready after 15 minutes:"
grep -v ' ready ' "$dir/states"
exit 1
