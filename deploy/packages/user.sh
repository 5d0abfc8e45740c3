#!/bin/sh
# Before the files: the user of the service. Systems have useradd, or BusyBox's adduser.
set -eu
if ! grep -q '^yaya:' /etc/group; then
	if command -v groupadd >/dev/null; then groupadd --system yaya; else addgroup -S yaya; fi
fi
if ! grep -q '^yaya:' /etc/passwd; then
	shell=/sbin/nologin
	if [ -x /usr/sbin/nologin ]; then shell=/usr/sbin/nologin; fi
	if command -v useradd >/dev/null; then
		useradd --system --gid yaya --home-dir /var/lib/yaya --no-create-home --shell "$shell" --comment yaya yaya
	else
		adduser -S -D -H -h /var/lib/yaya -s "$shell" -G yaya -g yaya yaya
	fi
fi
