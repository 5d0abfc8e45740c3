#!/usr/bin/env bash
# Three yayas on one machine that share one truth, on three NATS servers. Tokens are made on all
# of them while one node is killed and the server that may lead is stopped; in the end every node
# has every token that was acknowledged, and a token that is revoked on one is refused by all.
#
# YAYA names the binary (default: yaya from PATH).
set -euo pipefail
yaya=${YAYA:-yaya}
here=$(cd "$(dirname "$0")" && pwd)
for program in "$yaya" go curl; do
  command -v "$program" >/dev/null || { echo "run.sh: it needs $program, which is not a program on PATH (YAYA names yaya's)" >&2; exit 1; }
done
work=$(mktemp -d)
nats=
declare -A daemon=() base=()
cleanup() {
  for name in "${!daemon[@]}"; do kill "${daemon[$name]}" 2>/dev/null && wait "${daemon[$name]}" || true; done
  exec 3>&- || true
  [ -z "$nats" ] || wait "$nats" || true
  rm -rf "$work"
}
trap cleanup EXIT
on() { # on NODE ARGUMENTS: yaya with the folders of a node
  local name=$1; shift
  "$yaya" --data-dir "$work/$name" --config-dir "$work/$name-config" "$@"
}
wait_for() { # wait_for PATTERN FILE
  for _ in $(seq 1 300); do
    if grep -q -- "$1" "$2" 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  echo "\"$1\" does not come:" >&2; cat "$2" >&2; return 1
}
serve() { # serve NODE
  : >"$work/$1.log"
  "$yaya" --data-dir "$work/$1" --config-dir "$work/$1-config" serve --listen "${base[$1]:-127.0.0.1:0}" >"$work/$1.log" 2>&1 &
  daemon[$1]=$!
  wait_for "MCP endpoint" "$work/$1.log"
  base[$1]=$(sed -n 's#.*MCP endpoint *http://\([^/]*\)/mcp.*#\1#p' "$work/$1.log")
}
status() { # status NODE TOKEN: what a node answers to a client with a token
  curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $2" -H 'Content-Type: application/json' \
    -d '{"jsonrpc":"2.0","id":1,"method":"ping"}' "http://${base[$1]}/mcp"
}
on_all() { # on_all COMMAND: waits until it succeeds for each node, whose name it gets
  for name in north south west; do
    for attempt in $(seq 1 100); do
      if "$@" $name; then continue 2; fi
      sleep 0.1
    done
    echo "not on $name: $*" >&2; return 1
  done
}
has() { on "$2" token list | grep -q "^$1 "; }      # has TOKEN NODE
has_not() { ! on "$2" token list | grep -q "^$1 "; } # has_not TOKEN NODE
answers() { [ "$(status "$3" "$2")" = "$1" ]; }     # answers CODE TOKEN NODE
serves() { [ "$(status "$2" "$1")" != 401 ]; }      # serves TOKEN NODE

# The servers, which are yours.
(cd "$here/../.." && go build -buildvcs=false -o "$work/nats-servers" ./examples/cluster/nats)
mkfifo "$work/nats.in"
"$work/nats-servers" "$work/nats" <"$work/nats.in" >"$work/nats.out" &
nats=$!
exec 3>"$work/nats.in"
wait_for "nats://" "$work/nats.out"

# The nodes.
on north cluster init --nats "$(cat "$work/nats.out")" --name north
serve north
for name in south west; do
  invitation=$(on north cluster invite --url "http://${base[north]}" --json | sed -n 's/.*"invitation": "\(.*\)".*/\1/p')
  on $name cluster join "$invitation" --name $name
  serve $name
done
on south cluster status

# Changes on all nodes, while things fail.
acknowledged=
make_token() { # make_token NODE NAME
  if on "$1" token create "$2" --scope tools:call >"$work/token" 2>"$work/error"; then
    acknowledged="$acknowledged $2"
  else
    echo "not acknowledged: $2 on $1: $(head -c 200 "$work/error")"
  fi
}
for n in $(seq 1 30); do
  case $n in
    8) echo "west is killed"; kill -9 "${daemon[west]}"; wait "${daemon[west]}" 2>/dev/null || true ;;
    14) echo "a NATS server is stopped"; echo "stop 0" >&3 ;;
    20) echo "west starts again"; serve west ;;
    24) echo "the NATS server starts again"; echo "start 0" >&3 ;;
  esac
  case $((n % 3)) in
    0) make_token north "token-$n" ;;
    1) make_token south "token-$n" ;;
    2) if [ "$n" -lt 8 ] || [ "$n" -ge 20 ]; then make_token west "token-$n"; else make_token south "token-$n"; fi ;;
  esac
done

# Nothing that was acknowledged is lost, on any node.
for token in $acknowledged; do on_all has "$token"; done
echo "$(echo "$acknowledged" | wc -w) tokens were acknowledged; 3 nodes have all of them"

# A token of one node is one of all, and ends on all.
visitor=$(on south token create visitor --scope tools:call --json | sed -n 's/.*"token": "\(.*\)".*/\1/p')
on_all has visitor
on_all serves "$visitor"
on west token revoke visitor
on_all has_not visitor
on_all answers 401 "$visitor"
echo "a token that is revoked on west is refused by all"
echo "done"
