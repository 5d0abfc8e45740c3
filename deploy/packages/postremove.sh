#!/bin/sh
# After the files are gone. Data, the user and the configuration stay: only purge of dpkg removes
# the configuration. /var/lib/yaya holds sessions, keys, secrets and the audit, which nothing
# removes; so the key that opens the secrets stays, too.
set -eu
if [ "${1:-}" = purge ] && [ -d /etc/yaya ]; then
	find /etc/yaya -mindepth 1 -maxdepth 1 ! -name 'secrets*.key' -exec rm -rf {} +
	rmdir /etc/yaya 2>/dev/null || echo "The key of the secrets stays in /etc/yaya. Without it, nobody can read the secrets in /var/lib/yaya."
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
