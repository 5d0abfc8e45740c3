package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// rootOnly are files of the system that Debian, Fedora, Alpine and common services keep for
// root alone. A root user keeps the right to read its own files in a sandbox, so the rules
// have to hide them. Those of other users are out of reach there anyway, without
// capabilities. A name may be a pattern of [filepath.Match]; none lies in /usr or /opt,
// where programs are.
var rootOnly = []string{
	// Passwords of users, and who becomes root.
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd", "/etc/security/opasswd.old", "/etc/tcb", "/var/backups/shadow.bak", "/var/backups/gshadow.bak",
	"/etc/sudoers", "/etc/sudoers.d", "/etc/sudo-ldap.conf", "/etc/doas.conf", "/etc/doas.d", "/root/anaconda-ks.cfg", "/root/original-ks.cfg", "/var/log/btmp", "/var/log/audit",
	"/boot/grub/grub.cfg", "/boot/grub/user.cfg", "/boot/grub2/grub.cfg", "/boot/grub2/user.cfg",
	// Settings of packages, and what installed the system.
	"/var/cache/debconf/passwords.dat", "/var/cache/debconf/passwords.dat-old", "/etc/mysql/debian.cnf", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/zypp/credentials.d", "/etc/pki/consumer", "/etc/pki/entitlement",
	"/var/lib/cloud", "/var/lib/waagent", "/var/log/installer/cdebconf/questions.dat",
	// Keys of the host.
	"/etc/ssh/ssh_host_*key", "/etc/dropbear", "/etc/tinyssh", "/etc/machine-id.key", "/etc/krb5.keytab", "/etc/krb5kdc", "/var/lib/krb5kdc", "/var/kerberos",
	"/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/CA/private", "/etc/pki/libvirt/private", "/etc/pki/akmods/private", "/etc/pki/rsyslog", "/etc/letsencrypt", "/etc/stunnel", "/etc/keys", "/etc/cryptsetup-keys.d",
	"/etc/credstore", "/etc/credstore.encrypted", "/var/lib/systemd/credential.secret", "/var/lib/systemd/random-seed", "/var/lib/private", "/var/lib/dkms/mok.key", "/var/lib/shim-signed/mok", "/var/lib/sbctl", "/etc/secureboot",
	// Networks.
	"/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn", "/etc/ppp/*-secrets", "/etc/ppp/peers", "/etc/chatscripts", "/etc/netplan", "/etc/wpa_supplicant", "/etc/wpa_supplicant.conf", "/etc/hostapd", "/var/lib/iwd", "/var/lib/connman", "/var/lib/bluetooth",
	"/etc/ipsec.secrets", "/etc/ipsec.d", "/etc/strongswan", "/etc/swanctl", "/etc/racoon", "/etc/tinc", "/etc/vpnc", "/etc/openfortivpn", "/etc/openconnect", "/etc/nebula", "/etc/tailscale", "/var/lib/tailscale", "/var/lib/zerotier-one", "/etc/cloudflared",
	// Directories of users and names, mail and files.
	"/var/lib/sss", "/etc/sssd", "/etc/nslcd.conf", "/etc/ldap.secret", "/etc/pam_ldap.secret", "/etc/libnss-ldap.secret", "/var/lib/samba/private", "/etc/samba/private", "/etc/samba/smbpasswd", "/etc/samba/credentials",
	"/etc/rndc.key", "/etc/bind/rndc.key", "/etc/unbound/*.key", "/etc/chrony.keys", "/etc/chrony/chrony.keys", "/etc/ntp.keys", "/etc/snmp/snmpd.conf", "/var/lib/snmp", "/var/lib/net-snmp",
	"/etc/postfix/sasl_passwd*", "/etc/postfix/sasl", "/etc/exim4/passwd.client", "/etc/sasldb2", "/etc/dovecot/private", "/etc/fetchmailrc", "/etc/msmtprc", "/etc/davfs2/secrets", "/etc/rsyncd.secrets", "/etc/iscsi", "/var/lib/iscsi",
	// Containers, clusters and the management of machines.
	"/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/etc/docker/key.json", "/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd", "/etc/rancher", "/var/lib/rancher", "/etc/cni/net.d", "/etc/libvirt/secrets", "/var/lib/libvirt/secrets", "/etc/pve",
	"/etc/ceph", "/etc/corosync/authkey", "/etc/pacemaker/authkey", "/var/lib/pcsd", "/etc/gitlab", "/etc/gitlab-runner", "/etc/salt/pki", "/etc/puppetlabs", "/var/lib/puppet", "/etc/chef", "/etc/borgmatic",
	// Jobs, whose command lines hold what was typed.
	"/var/spool/cron", "/var/spool/at", "/etc/crontabs",
}

// ofRoot are the files of [rootOnly]; those that a pattern names as they are now.
func ofRoot() []string {
	fixed, patterns := rootFiles()
	all := slices.Clone(fixed)
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		all = append(all, found...)
	}
	return all
}

// rootFiles divides [rootOnly] into names and patterns.
var rootFiles = sync.OnceValues(func() (fixed, patterns []string) {
	for _, name := range rootOnly {
		if strings.ContainsRune(name, '*') {
			patterns = append(patterns, name)
		} else {
			fixed = append(fixed, name)
		}
	}
	return fixed, patterns
})
