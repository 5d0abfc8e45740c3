#!/bin/sh
# Starts the cluster of compose.yaml. The first time it makes the passwords of NATS, founds the
# cluster and has the other nodes join, each with an invitation of its own. It can be repeated
# after a failure.
#
#   YAYA_HOST=gate.example ./up.sh
set -eu
umask 077
cd "$(dirname "$0")"

# random prints a password that needs no quotes in URLs, and is not a number for NATS.
random() { printf p; od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

if ! [ -s .env ]; then
  : "${YAYA_HOST:?name the host by which clients reach yaya: YAYA_HOST=gate.example ./up.sh}"
  echo "YAYA_HOST=$YAYA_HOST" >.env
fi
if ! [ -s nats.env ]; then
  route=$(random)
  {
    echo "NATS_PASSWORD=$(random)"
    echo "NATS_ROUTE_PASSWORD=$route"
    for n in 1 2 3; do echo "NATS_ROUTE_$n=nats-route://route:$route@nats-$n:6222"; done
  } >nats.env.new
  mv nats.env.new nats.env
fi
password=$(sed -n 's/^NATS_PASSWORD=//p' nats.env)

# in_node NODE COMMAND...: runs a command in a container with the volume of a node.
in_node() {
  node=$1
  shift
  docker compose run --rm -T --no-deps "$node" "$@"
}
is_node() { in_node "$1" test -s .local/state/yaya/keys/cluster.json; }

docker compose up -d --wait nats-1 nats-2 nats-3
if ! is_node yaya-1; then
  url=
  for n in 1 2 3; do url="$url,nats://yaya:$password@nats-$n:4222"; done
  in_node yaya-1 yaya cluster init --name yaya-1 --nats "${url#,}"
fi
docker compose up -d --wait yaya-1
for node in yaya-2 yaya-3; do
  is_node "$node" && continue
  invitation=$(docker compose exec -T yaya-1 yaya cluster invite --url http://yaya-1:8787 --json | sed -n 's/.*"invitation": *"\([^"]*\)".*/\1/p')
  in_node "$node" yaya cluster join "$invitation" --name "$node"
done
docker compose up -d --wait
docker compose exec -T yaya-1 yaya cluster status
