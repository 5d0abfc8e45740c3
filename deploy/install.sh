#!/bin/sh
# Installs yaya into ~/.local (or PREFIX) from the files of a release, and checks their digest. It
# needs no root, and asks for none. Linux and macOS.
#
#   sh install.sh [--version X.Y.Z] [--uninstall]
#
# PREFIX               where to: PREFIX/bin, PREFIX/share (~/.local)
# YAYA_BASE_URL        where from: the address of a folder with the files of one release
# YAYA_MINISIGN_KEY    a public key of minisign: the digests must be signed by it
set -eu

repository=https://github.com/yaya-ai/yaya
# A file of a release has some 20 MB; a connection that gives nothing for a minute has failed.
most=200000000

say() { echo "install.sh: $*" >&2; }
fail() {
	say "$*"
	exit 1
}

synopsis="usage: sh install.sh [--version X.Y.Z] [--uninstall]"
usage() { fail "$synopsis"; }

version=
uninstall=
while [ $# -gt 0 ]; do
	case $1 in
	--version)
		[ $# -ge 2 ] || usage
		version=${2#v}
		shift
		;;
	--uninstall) uninstall=yes ;;
	-h | --help)
		echo "$synopsis"
		exit 0
		;;
	*) usage ;;
	esac
	shift
done

prefix=${PREFIX:-}
if [ -z "$prefix" ]; then
	[ -n "${HOME:-}" ] || fail "neither PREFIX nor HOME is set: set PREFIX to the folder to install into"
	prefix=$HOME/.local
fi
case $prefix in /*) ;; *) fail "PREFIX is $prefix: name an absolute path" ;; esac

bin=$prefix/bin/yaya
files="share/man/man1/yaya.1 share/bash-completion/completions/yaya share/zsh/site-functions/_yaya share/fish/vendor_completions.d/yaya.fish share/doc/yaya/LICENSE"

if [ -n "$uninstall" ]; then
	if [ ! -e "$bin" ]; then
		say "there is no $bin: nothing to uninstall"
		exit 0
	fi
	rm -f "$bin" || fail "cannot remove $bin"
	for f in $files; do rm -f "$prefix/$f"; done
	rmdir "$prefix/share/doc/yaya" 2>/dev/null || true # another program's files may be there
	say "$bin is removed. Settings stay in ~/.config/yaya, sessions and keys in ~/.local/state/yaya"
	exit 0
fi

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
MINGW* | MSYS* | CYGWIN* | Windows*) fail "this script installs no program for Windows: take the zip of the release (INSTALL.md says how), or run this in WSL 2 (wsl --install)" ;;
*) fail "there is no yaya for $(uname -s): it runs on Linux and macOS" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no yaya for $(uname -m): build it with Go (go install github.com/yaya-ai/yaya/cmd/yaya@latest)" ;;
esac

if [ -n "${YAYA_BASE_URL:-}" ]; then
	base=${YAYA_BASE_URL%/}
elif [ -n "$version" ]; then
	base=$repository/releases/download/v$version
else
	base=$repository/releases/latest/download
fi

if command -v curl >/dev/null; then
	fetch() { curl -fsSL --connect-timeout 20 --speed-limit 1 --speed-time 60 --max-filesize "$most" -o "$2" "$1"; }
elif command -v wget >/dev/null; then
	fetch() { wget -q -T 60 -O "$2" "$1"; }
else
	fail "neither curl nor wget is here: install one of them"
fi
if command -v sha256sum >/dev/null; then
	sum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null; then
	sum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
else
	fail "neither sha256sum nor shasum is here: install one of them"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch "$base/checksums.txt" "$work/checksums.txt" || fail "cannot download $base/checksums.txt: check the address and the network"
if [ -n "${YAYA_MINISIGN_KEY:-}" ]; then
	command -v minisign >/dev/null || fail "YAYA_MINISIGN_KEY is set, and minisign is not here: install it, or unset the variable to go without the signature"
	fetch "$base/checksums.txt.minisig" "$work/checksums.txt.minisig" || fail "cannot download $base/checksums.txt.minisig: this release is not signed"
	minisign -V -q -P "$YAYA_MINISIGN_KEY" -m "$work/checksums.txt" >&2 || fail "the signature of $base/checksums.txt is not that of YAYA_MINISIGN_KEY: nothing was installed"
fi
# Names of files come from outside: only those of a release count.
line=$(grep -E "^[0-9a-f]{64}  yaya_[0-9A-Za-z.-]+_${os}_$arch\.tar\.gz\$" "$work/checksums.txt" | head -n 1)
[ -n "$line" ] || fail "$base/checksums.txt names no file for $os $arch: nothing was installed"
want=${line%% *}
name=${line##* }
if [ -n "$version" ] && [ "$name" != "yaya_${version}_${os}_$arch.tar.gz" ]; then
	fail "$base has $name, not version $version: nothing was installed"
fi

fetch "$base/$name" "$work/$name" || fail "cannot download $base/$name: check the network, and run this again"
got=$(sum "$work/$name")
[ "$got" = "$want" ] || fail "$name has the digest $got, and checksums.txt says $want: the download was cut or changed, and nothing was installed"
tar -xzf "$work/$name" -C "$work" || fail "cannot unpack $name"
from=$work/${name%.tar.gz}
"$from/yaya" version >/dev/null || fail "$name does not run on this machine: nothing was installed"

# Beside its place, then renamed: a yaya that runs goes on, and an interruption leaves the old one.
put() {
	to=$prefix/$2
	if ! { mkdir -p "${to%/*}" && cp "$from/$1" "$to.new" && chmod "$3" "$to.new" && mv -f "$to.new" "$to"; }; then
		fail "cannot write $to: choose another PREFIX, or run this as a user who may write there"
	fi
}
put man/yaya.1 share/man/man1/yaya.1 644
put completions/yaya.bash share/bash-completion/completions/yaya 644
put completions/_yaya share/zsh/site-functions/_yaya 644
put completions/yaya.fish share/fish/vendor_completions.d/yaya.fish 644
put LICENSE share/doc/yaya/LICENSE 644
put yaya bin/yaya 755

"$bin" version
run=$bin
case $bin in *[!A-Za-z0-9/._+-]*) run="\"$bin\"" ;; esac # a space in PREFIX
if [ "$(command -v yaya || true)" = "$bin" ]; then
	run=yaya
else
	say "$prefix/bin is not in your PATH, or another yaya comes first: add it, or use the whole path"
fi
echo "Next: $run serve"
echo "Then connect your client: $run client add claude-code"
