#!/bin/sh
# After the files, of an installation and of an upgrade. The service is not started by itself: most
# people run yaya as themselves. A running one goes on with the new program.
set -eu
mkdir -p /etc/yaya /var/lib/yaya
# The folders belong to the service from the first installation on, and so does what is in them: by
# links there, it could have root change other files at an upgrade.
if [ "$(stat -c %U /etc/yaya)" = root ]; then
	chown yaya:yaya /etc/yaya /var/lib/yaya
	chmod 700 /etc/yaya /var/lib/yaya
	if [ -f /etc/yaya/config.toml ] && [ ! -L /etc/yaya/config.toml ]; then
		chown -h yaya:yaya /etc/yaya/config.toml
		chmod 600 /etc/yaya/config.toml
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart yaya.service
fi
# The arguments of a first installation: "configure" without a version (deb), "1" (rpm), a version
# alone (apk). An upgrade says nothing.
case "${1:-}/${2:-}" in
configure/ | 1/ | [0-9]*.[0-9]*/)
	echo "yaya is installed. For you alone: yaya serve, or yaya service install."
	if [ -d /run/systemd/system ]; then
		echo "As a service of the machine: systemctl enable --now yaya"
	fi
	;;
esac
