#!/bin/sh
# A coding session, from an empty folder to a check that passes. See README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
yaya=${YAYA:?set YAYA to the yaya binary}
node=${NODE:-node}
modules=${NODE_MODULES:-$here/node_modules}

# What it needs, before it makes anything.
lacks() { echo "run.sh: $*" >&2; exit 1; }
[ -x "$yaya" ] || command -v "$yaya" > /dev/null || lacks "YAYA is $yaya, which is not a program: build it (make build) and give its whole path"
for program in git make "$node"; do
	command -v "$program" > /dev/null || lacks "it needs $program, which is not on PATH"
done
"$node" -e 'process.exit(process.features.typescript ? 0 : 1)' ||
	lacks "it runs TypeScript with Node 24 (22.18 or later does), and $node is $("$node" --version): name another with NODE"
for package in openapi-typescript openapi-fetch typescript; do
	[ -d "$modules/$package" ] || lacks "it needs the npm package $package in $modules: npm install openapi-typescript openapi-fetch typescript, or name another folder with NODE_MODULES"
done
work=$(mktemp -d)
pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$work"' EXIT

free() { "$node" -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'; }
model=$(free)
port=$(free)

# The project: a script with a bug, and a check that shows it.
mkdir "$work/project"
cd "$work/project"
printf '#!/bin/sh\necho $(($1 - $2))\n' > add.sh
printf 'test:\n\ttest "$$(sh add.sh 2 3)" = 5\n' > Makefile
printf '# Project\n\n## Verify\n\n```\nmake test\n```\n' > AGENTS.md
git init -q
git -c user.name=you -c user.email=you@example.org add .
git -c user.name=you -c user.email=you@example.org commit -qm "A script"

# A model that needs no key, and yaya.
"$node" "$here/model.mjs" "$model" & pids="$pids $!"
set -- --data-dir "$work/data" --config-dir "$work/config"
"$yaya" provider add local --base-url "http://127.0.0.1:$model/v1" --model scripted --use "$@" > /dev/null
"$yaya" trust --yes "$work/project" "$@" > /dev/null
"$yaya" serve --listen "127.0.0.1:$port" "$@" > "$work/log" 2>&1 & pids="$pids $!"
base="http://127.0.0.1:$port"
for _ in $(seq 200); do
	if "$node" -e "fetch('$base/health?ready=1').then(r=>process.exit(r.ok?0:1),()=>process.exit(1))"; then break; fi
	sleep 0.1
done

# The typed client: types from yaya's own document, checked, and run.
mkdir "$work/client"
cd "$work/client"
cp "$here/session.ts" .
ln -s "$modules" node_modules
printf '{"type":"module"}' > package.json
"$node" -e "fetch('$base/v1/openapi.json').then(r=>r.text()).then(t=>require('fs').writeFileSync('openapi.json',t))"
"$node" node_modules/openapi-typescript/bin/cli.js openapi.json -o api.d.ts > /dev/null 2>&1
printf 'declare const process: { argv: string[] };\n' > process.d.ts
"$node" node_modules/typescript/bin/tsc --noEmit --strict --skipLibCheck --target es2023 --lib es2023,dom,dom.asynciterable \
	--module nodenext --allowImportingTsExtensions session.ts process.d.ts
"$node" --disable-warning=ExperimentalWarning session.ts "$base" "$work/project"
printf 'add.sh: '; sh "$work/project/add.sh" 2 3
