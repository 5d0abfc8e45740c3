#!/bin/sh
# Before the files go. An upgrade ("upgrade" of deb, "1" of rpm) leaves the service running.
set -eu
case "${1:-}" in
upgrade | 1 | failed-upgrade | deconfigure) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now yaya.service
fi
