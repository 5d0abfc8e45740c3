#!/bin/sh
# After the files are gone. Data, the user and the configuration stay: only purge of dpkg removes
# the configuration. /var/lib/yaya holds sessions, keys and the audit, which nothing removes.
set -eu
if [ "${1:-}" = purge ]; then
	rm -rf /etc/yaya
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
