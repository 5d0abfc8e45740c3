package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// isRootOnly reports whether the files that root alone reads include one.
func isRootOnly(name string) bool {
	for _, pattern := range rootOnly {
		if ok, err := filepath.Match(pattern, name); err == nil && ok || inside.Covers(pattern, name) {
			return true
		}
	}
	return false
}

// SEC-1: the files that distributions and common services keep for root alone are hidden from
// a root user's programs.
func TestFilesOfRoot(t *testing.T) {
	for _, name := range []string{
		"/etc/shadow", "/etc/gshadow-", "/etc/security/opasswd", "/var/backups/shadow.bak", "/var/cache/debconf/passwords.dat", "/etc/mysql/debian.cnf",
		"/etc/letsencrypt/live/example.com/privkey.pem", "/etc/ssl/private/ssl-cert-snakeoil.key", "/etc/pki/tls/private/localhost.key",
		"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_dsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_xmss_key", "/etc/ssh/ssh_host_key", "/etc/dropbear/dropbear_ed25519_host_key",
		"/etc/kubernetes/admin.conf", "/var/lib/kubelet/pki/kubelet.key", "/etc/rancher/k3s/k3s.yaml", "/etc/wireguard/wg0.conf", "/etc/NetworkManager/system-connections/home.nmconnection",
		"/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets", "/etc/wpa_supplicant/wpa_supplicant.conf", "/etc/crontabs/root", "/etc/ipsec.secrets", "/var/lib/iwd/home.psk", "/root/anaconda-ks.cfg", "/etc/sssd/sssd.conf",
	} {
		if !isRootOnly(name) {
			t.Errorf("%s is not hidden from programs of root, want it hidden", name)
		}
	}
	for _, name := range []string{"/etc/passwd", "/etc/ssh/ssh_config", "/etc/ssh/ssh_host_rsa_key.pub", "/etc/ssl/certs/ca-certificates.crt", "/etc/ppp/ip-up", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/hosts"} {
		if isRootOnly(name) {
			t.Errorf("%s is hidden from programs of root, want it shown: programs need it", name)
		}
	}
	for _, name := range rootOnly {
		if _, err := filepath.Match(name, "/"); err != nil || !filepath.IsAbs(name) || filepath.Clean(name) != name || inside.Covers("/usr", name) || inside.Covers("/opt", name) {
			t.Errorf("%q cannot be in the list: %v", name, err)
		}
	}
	for _, name := range ofRoot() {
		if strings.ContainsRune(name, '*') {
			t.Errorf("the pattern %q was not expanded", name)
		}
	}
}

// A program of root reads none of the files that this machine has of those.
func TestFilesOfRootAreHidden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root reads them")
	}
	var there []string
	for _, name := range ofRoot() {
		_ = filepath.WalkDir(name, func(at string, d fs.DirEntry, err error) error {
			if err != nil || len(there) > 500 {
				return fs.SkipAll
			}
			info, err := d.Info()
			if err != nil || !d.Type().IsRegular() || info.Size() == 0 {
				return nil //nolint:nilerr // gone
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == 0 {
				there = append(there, at)
			}
			return nil
		})
	}
	if len(there) == 0 {
		t.Skip("this machine has none")
	}
	t.Logf("%q", there)
	for _, backend := range Backends()[:len(Backends())-1] {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			for _, name := range []string{"command", "server"} {
				got, err := b.start(t, profile(t, name), "/", nil, append([]string{"sh", "-c", `for f in "$@"; do head -c 1 "$f" >/dev/null 2>&1 && test -s "$f" && echo "$f"; done; true`, "sh"}, there...)...)
				if err != nil || got.code != 0 || got.out != "" {
					t.Errorf("%s: reads %q, exit code %d, %v; want nothing", name, got.out, got.code, err)
				}
			}
		})
	}
}
