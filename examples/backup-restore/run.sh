#!/usr/bin/env bash
# A drill: a yaya that works is backed up, destroyed, restored and verified, and goes on.
#
# YAYA names the binary (default: yaya from PATH). With RECIPIENT and IDENTITY, a recipient
# of age and the file with its key, the backup is encrypted.
set -euo pipefail
yaya=${YAYA:-yaya}
command -v "$yaya" >/dev/null || { echo "run.sh: it needs $yaya, which is not a program on PATH (YAYA names it)" >&2; exit 1; }
work=$(mktemp -d)
clients=4
daemon= load=()
cleanup() {
  touch "$work/enough"
  [ ${#load[@]} = 0 ] || wait "${load[@]}" 2>/dev/null || true
  [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" || true; }
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
mkdir backups
at() { "$yaya" --data-dir "$work/data" --config-dir "$work/config" "$@"; }
fail() { echo "run.sh: $*" >&2; exit 1; }
wait_for() { # wait_for WHAT COMMAND...
  local what=$1; shift
  for _ in $(seq 1 600); do
    if "$@" 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  fail "$what does not come"
}
serve() {
  : >"$work/serve.log"
  "$yaya" --data-dir "$work/data" --config-dir "$work/config" serve --listen 127.0.0.1:0 >"$work/serve.log" 2>&1 &
  daemon=$!
  wait_for "the daemon" grep -q "MCP endpoint" "$work/serve.log"
}
said() { cat "$work/said-$1" 2>/dev/null || echo 0; }
talks() { [ "$(said "$1")" -ge 3 ]; }

# A yaya with a token, a secret and clients that talk without a pause.
serve
at token create drill >/dev/null
echo "a value for the drill" | at secret set drill >/dev/null
talk() {
  local n=0
  while [ ! -e "$work/enough" ]; do
    n=$((n + 1))
    at run --session "client-$1" "message $n of client $1" >/dev/null 2>>"$work/talk.log" || fail "client $1: $(tail -1 "$work/talk.log")"
    echo "$n" >"$work/said-$1.new" && mv "$work/said-$1.new" "$work/said-$1"
  done
}
for i in $(seq "$clients"); do talk "$i" & load+=($!); done
for i in $(seq "$clients"); do wait_for "client $i" talks "$i"; done

# Back up under load. What was answered before must be in the backup.
for i in $(seq "$clients"); do said "$i" >"$work/before-$i"; done
if [ -n "${RECIPIENT:-}" ]; then
  at backup "$work/backups" --recipient "$RECIPIENT" >/dev/null
else
  at backup "$work/backups" >/dev/null 2>&1
fi
for i in $(seq "$clients"); do
  before=$(cat "$work/before-$i")
  wait_for "client $i after the backup" test "$(said "$i")" -ge "$before"
done
echo "backed up: under load"

# Destroy: kill -9, and nothing is left of the data and the configuration.
touch "$work/enough"
wait "${load[@]}"
load=()
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
daemon=
mv "$work/config" "$work/lost-config"
rm -rf "$work/data"
echo "destroyed: data and configuration"

# Restore and verify.
backup=$(echo "$work"/backups/*)
at restore "$backup" ${IDENTITY:+--identity "$IDENTITY"} >/dev/null
[ -e "$work/config/secrets.key" ] || { mkdir -p "$work/config"; cp "$work/lost-config/secrets.key" "$work/config/"; } # kept elsewhere
at verify >"$work/verify.log" 2>&1 || { cat "$work/verify.log" >&2; fail "the restored data is damaged"; }
echo "restored: verified"

# Go on: everything that was answered before the backup is there, and so is the rest.
serve
for i in $(seq "$clients"); do
  before=$(cat "$work/before-$i")
  at session export "client-$i" >"$work/tape"
  for n in $(seq "$before"); do
    grep -q "message $n of client $i\"" "$work/tape" || fail "message $n of client $i is lost; $before were answered before the backup"
  done
  [ "$(at run --session "client-$i" "after" 2>/dev/null)" = "echo: after" ] || fail "client $i cannot go on"
done
[[ "$(at token list)" == *drill* ]] || fail "the token is lost"
[[ "$(at secret list)" == *drill* ]] || fail "the secret is lost"
at verify >"$work/verify.log" 2>&1 || { cat "$work/verify.log" >&2; fail "the data is damaged"; }
echo "goes on: $clients conversations, the token and the secret"
