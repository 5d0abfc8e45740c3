#!/bin/sh
# Runs go build -o OUTPUT with the flags and the package of the other arguments. If there is no
# OUTPUT yet, it says how far the build is: go downloads and compiles for minutes without a word.
# It writes lines to stderr, and needs no terminal.
set -eu
out=$1
shift
if [ -e "$out" ]; then
	exec go build -o "$out" "$@"
fi
say() { echo "$*" >&2; }

say "First build: go downloads the modules that are missing, then compiles."
# Only packages that are not in the cache of go are compiled, and named by go build -v.
stale=$(go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$@")
total=$(printf '%s\n' "$stale" | grep -c . || true)
say "$total packages to compile."
{
	go build -v -o "$out" "$@" 2>&1 && rc=0 || rc=$?
	echo "exit status of go build: $rc"
} | {
	done=0
	shown=0
	while IFS= read -r line; do
		case $line in
		"exit status of go build: "*) rc=${line##* } ;;
		*" "* | "") say "$line" ;; # not the name of a package: an error
		*)
			done=$((done + 1))
			if [ "$done" -ge "$total" ]; then
				[ "$shown" = linking ] || say "$total of $total packages, linking …"
				shown=linking
			elif [ $((done * 20 / total)) != "$shown" ]; then
				shown=$((done * 20 / total))
				say "$done of $total packages"
			fi
			;;
		esac
	done
	exit "$rc"
}
