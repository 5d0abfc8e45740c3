//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// The certificate of a run is a file that holds the key, too; it stands for 127.0.0.1 and is its
// own authority. Fixtures and yaya get its name from this variable, as programs do that use
// OpenSSL, and Go's.
const certFile = "SSL_CERT_FILE"

// makeCertificate writes the certificate of a run, for a day.
func makeCertificate(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	out := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	return os.WriteFile(file, out, 0o600)
}

// clientTLS trusts the certificate of the run.
func clientTLS() (*tls.Config, error) {
	data, err := os.ReadFile(os.Getenv(certFile))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, errors.New("the file of " + certFile + " holds no certificate")
	}
	return &tls.Config{RootCAs: roots}, nil //nolint:gosec // Go's defaults
}

// secureRow is a line of the table of HTTPS: which side of yaya speaks it.
type secureRow struct {
	Name      string  `json:"name"`
	InFlight  int     `json:"in_flight"`
	Size      int     `json:"size"`
	PerSecond float64 `json:"per_second"`
	Share     float64 `json:"share"`   // of the direct connection's calls, over HTTPS
	Reverse   float64 `json:"reverse"` // the same of the reverse proxy
	CPU       float64 `json:"cpu_us"`
}

// secureGoal is how many of the reverse proxy's calls are wanted.
const secureGoal = 1.5

func (r secureRow) String() string {
	return fmt.Sprintf("| %s | %d | %s | %.0f | %.2f | %.2f | **%.2f** | %.1f | %.1f |",
		r.Name, r.InFlight, sizeName(r.Size), r.PerSecond, r.Share, r.Reverse, r.Share/max(r.Reverse, .001), secureGoal, r.CPU)
}

// overTLS measures the relay with HTTPS before and behind it, beside the standard library's reverse
// proxy in the same place.
func overTLS(bin, dir string, rounds int, per time.Duration, into *results) error {
	cert := filepath.Join(dir, "cert.pem")
	if err := makeCertificate(cert); err != nil {
		return err
	}
	if err := os.Setenv(certFile, cert); err != nil { // for all that is started
		return err
	}
	defer func() { _ = os.Unsetenv(certFile) }()
	defer endSpawned()
	trust, err := clientTLS()
	if err != nil {
		return err
	}
	fixture := func(args ...string) (addr string) {
		if err == nil {
			addr, err = spawn(context.Background(), args...)
		}
		return addr
	}
	plain := fixture("-fixture", "http")
	one := fixture("-fixture", "http", "-tls", "http/1.1")
	two := fixture("-fixture", "http", "-tls", "h2")
	before := fixture("-fixture", "reverse", "-to", "http://"+plain, "-tls", "http/1.1")
	behindOne := fixture("-fixture", "reverse", "-to", "https://"+one)
	behindTwo := fixture("-fixture", "reverse", "-to", "https://"+two)
	if err != nil {
		return err
	}
	open := func(name, upstream string, args ...string) (*daemon, error) {
		place := filepath.Join(dir, name)
		if err := os.MkdirAll(place, 0o700); err != nil {
			return nil, err
		}
		d, _, err := startWith(bin, place, map[string]any{"http": map[string]any{"type": "http", "url": upstream + "/mcp"}}, args)
		return d, err
	}
	fmt.Println("HTTPS: calls per second as a share of the direct connection's, over HTTPS. The reverse proxy is in the same place as yaya.")
	fmt.Println()
	fmt.Println("| HTTPS is | in flight | size | yaya/s | yaya | reverse proxy | yaya ÷ reverse proxy | goal | CPU µs/call |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, c := range []struct {
		name, upstream, reverse string
		front                   *tls.Config // of yaya and of the reverse proxy
		args                    []string
	}{
		{"before yaya", "http://" + plain, before, trust, []string{"--tls-cert", cert, "--tls-key", cert}},
		{"behind it, HTTP/1.1", "https://" + one, behindOne, nil, nil},
		{"behind it, HTTP/2", "https://" + two, behindTwo, nil, nil},
	} {
		d, err := open(fmt.Sprintf("tls%d", len(into.Secure)), c.upstream, c.args...)
		if err != nil {
			return err
		}
		err = func() error {
			defer d.stop()
			for _, size := range numbers(sizes) {
				r, err := measureSecure(d, one, c.reverse, trust, c.front, secureRow{Name: c.name, InFlight: 64, Size: size}, rounds, per)
				if err != nil {
					return err
				}
				into.Secure = append(into.Secure, r)
				fmt.Println(r)
			}
			return nil
		}()
		if err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// measureSecure fills in a row, from the medians of rounds in which everything has its turn.
func measureSecure(d *daemon, direct, reverse string, trust, front *tls.Config, r secureRow, rounds int, per time.Duration) (secureRow, error) {
	straight := &target{addr: direct, path: "/mcp", tool: "echo", tls: trust}
	proxied := &target{addr: reverse, path: "/mcp", tool: "echo", lenient: true, tls: front}
	through := &target{addr: d.addr, path: "/mcp", tool: "http__echo", tls: front}
	if err := through.open(); err != nil {
		return r, err
	}
	if _, err := through.run(r.InFlight, r.Size, per/4); err != nil { // warm up
		return r, err
	}
	var rate, share, other, cpu []float64
	for range rounds {
		dl, err := straight.run(r.InFlight, r.Size, per)
		if err != nil {
			return r, err
		}
		pl, err := proxied.run(r.InFlight, r.Size, per)
		if err != nil {
			return r, err
		}
		c0 := d.cpu()
		yl, err := through.run(r.InFlight, r.Size, per)
		if err != nil {
			return r, err
		}
		cpu = append(cpu, float64((d.cpu()-c0).Microseconds())/float64(yl.calls))
		rate, share, other = append(rate, yl.perSecond), append(share, yl.perSecond/dl.perSecond), append(other, pl.perSecond/dl.perSecond)
	}
	r.PerSecond, r.Share, r.Reverse, r.CPU = load.Median(rate), load.Median(share), load.Median(other), load.Median(cpu)
	return r, nil
}

// toProxy returns the transport of the reverse proxy, which trusts the certificate of the run.
func toProxy() (*http.Transport, error) {
	t := &http.Transport{MaxIdleConnsPerHost: 128, ForceAttemptHTTP2: true}
	if os.Getenv(certFile) == "" {
		return t, nil
	}
	var err error
	t.TLSClientConfig, err = clientTLS()
	return t, err
}
