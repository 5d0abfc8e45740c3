package netaddr

import (
	"net/netip"
	"testing"
)

// last returns the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// R21, UP-25: no address of a special-purpose block is public, from its first to its
// last, however it is written. Addresses beside a block keep their own class.
func TestBlocks(t *testing.T) {
	seen := map[netip.Prefix]bool{}
	for i, b := range blocks {
		t.Run(b.Prefix.String(), func(t *testing.T) {
			if seen[b.Prefix] {
				t.Errorf("it stands in the table twice")
			}
			seen[b.Prefix] = true
			if b.Prefix != b.Prefix.Masked() {
				t.Errorf("got %s, want %s", b.Prefix, b.Prefix.Masked())
			}
			if b.Name == "" || b.RFC == "" {
				t.Error("it has no name or no RFC")
			}
			for _, wider := range blocks[:i] {
				if wider.Prefix.Bits() < b.Prefix.Bits() && wider.Prefix.Overlaps(b.Prefix) {
					t.Errorf("it is hidden behind %s", wider.Prefix)
				}
			}
			if b.Prefix == nat64 {
				return // judged by what is in it
			}
			for _, a := range []netip.Addr{b.Prefix.Addr(), b.Prefix.Addr().Next(), last(b.Prefix).Prev(), last(b.Prefix)} {
				if !b.Prefix.Contains(a) {
					continue
				}
				if b.Prefix.String() != "::ffff:0:0/96" && Public(a) {
					t.Errorf("Public(%s) = true", a)
				}
				if !a.Is4() {
					continue
				}
				v4 := a.As4()
				for name, prefix := range map[string]string{"mapped": "::ffff:0:0", "nat64": "64:ff9b::", "compatible": "::", "siit": "::ffff:0:0:0"} {
					w := netip.MustParseAddr(prefix).As16()
					copy(w[12:], v4[:])
					if in := netip.AddrFrom16(w); Public(in) || Public(in.WithZone("eth0")) {
						t.Errorf("%s: Public(%s) = true", name, in)
					}
				}
			}
		})
	}
}

func TestPublic(t *testing.T) {
	for name, c := range map[string]struct {
		addr string
		want bool
	}{
		"v4":                        {"1.1.1.1", true},
		"v4 below 10/8":             {"9.255.255.255", true},
		"v4 above 10/8":             {"11.0.0.0", true},
		"v4 below shared":           {"100.63.255.255", true},
		"v4 above shared":           {"100.128.0.0", true},
		"v4 below loopback":         {"126.255.255.255", true},
		"v4 above loopback":         {"128.0.0.0", true},
		"v4 below link local":       {"169.253.255.255", true},
		"v4 above link local":       {"169.255.0.0", true},
		"v4 below 172.16/12":        {"172.15.255.255", true},
		"v4 above 172.16/12":        {"172.32.0.0", true},
		"v4 above 192.0.0/24":       {"192.0.1.0", true},
		"v4 below 6to4 relays":      {"192.88.98.255", true},
		"v4 above 6to4 relays":      {"192.88.100.0", true},
		"v4 below 192.168/16":       {"192.167.255.255", true},
		"v4 above 192.168/16":       {"192.169.0.0", true},
		"v4 above benchmarking":     {"198.20.0.0", true},
		"v4 below multicast":        {"223.255.255.255", true},
		"metadata of clouds":        {"169.254.169.254", false},
		"metadata of Alibaba":       {"100.100.100.200", false},
		"metadata of AWS, v6":       {"fd00:ec2::254", false},
		"v6":                        {"2606:4700::1111", true},
		"v6 above 2001::/23":        {"2001:200::1", true},
		"v6 beside documentation":   {"2001:db9::1", true},
		"v6 below 6to4":             {"2001:ffff::1", true},
		"v6 above 6to4":             {"2003::1", true},
		"v6 with a zone":            {"2606:4700::1111%eth0", true},
		"mapped public":             {"::ffff:1.1.1.1", true},
		"mapped loopback":           {"::ffff:127.0.0.1", false},
		"mapped private":            {"::ffff:10.0.0.1", false},
		"NAT64 of a public one":     {"64:ff9b::1.1.1.1", true},
		"NAT64 of loopback":         {"64:ff9b::127.0.0.1", false},
		"NAT64 of a private one":    {"64:ff9b::10.0.0.1", false},
		"NAT64 of metadata":         {"64:ff9b::169.254.169.254", false},
		"NAT64, local, of a public": {"64:ff9b:1::1.1.1.1", false},
		"above NAT64":               {"64:ff9b::1:0:0", false},
		"compatible loopback":       {"::127.0.0.1", false},
		"compatible public":         {"::1.1.1.1", false},
		"SIIT loopback":             {"::ffff:0:127.0.0.1", false},
		"SIIT public":               {"::ffff:0:1.1.1.1", false},
		"6to4 of loopback":          {"2002:7f00:1::", false},
		"6to4 of a public one":      {"2002:101:101::1", false},
		"Teredo":                    {"2001:0:53aa:64c::1", false},
		"site local":                {"fec0::1", false},
		"documentation":             {"2001:db8::1", false},
		"documentation with a zone": {"2001:db8::1%eth0", false},
		"documentation, new":        {"3fff:fff::1", false},
		"6to4 relay":                {"192.88.99.1", false},
		"outside 2000::/3":          {"4000::1", false},
		"reserved, v6":              {"1000::1", false},
		"unspecified":               {"::", false},
		"link local with a zone":    {"fe80::1%eth0", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Public(netip.MustParseAddr(c.addr)); got != c.want {
				t.Errorf("Public(%s) = %v, want %v", c.addr, got, c.want)
			}
		})
	}
	if Public(netip.Addr{}) {
		t.Error("Public of the zero address = true, want false")
	}
}

func TestGuarded(t *testing.T) {
	for a, want := range map[string]bool{
		"169.254.169.254": true, "169.254.0.1": true, "fe80::1": true, "fe80::1%eth0": true, "100.100.100.200": true, "fd00:ec2::254": true, "fd20:ce::254": true, "::ffff:169.254.169.254": true, "64:ff9b::169.254.169.254": true,
		"10.0.0.1": false, "100.64.0.1": false, "fd00::1": false, "127.0.0.1": false, "1.1.1.1": false,
	} {
		if got := Guarded(netip.MustParseAddr(a)); got != want {
			t.Errorf("Guarded(%s) = %v, want %v", a, got, want)
		}
	}
}

func TestTogether(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"the same":                     {"10.0.0.1", "10.0.0.1", true},
		"one network":                  {"10.0.0.1", "10.9.9.9", true},
		"another network":              {"10.0.0.1", "192.168.0.1", false},
		"this machine":                 {"127.0.0.1", "127.0.0.2", true},
		"this machine, both protocols": {"127.0.0.1", "::1", true},
		"mapped":                       {"::ffff:127.0.0.1", "::1", true},
		"compatible is not this":       {"127.0.0.1", "::127.0.0.1", false},
		"NAT64 is not this":            {"127.0.0.1", "64:ff9b::127.0.0.1", false},
		"a network and this machine":   {"10.0.0.1", "127.0.0.1", false},
		"this machine and a network":   {"127.0.0.1", "10.0.0.1", false},
		"public and this machine":      {"1.1.1.1", "127.0.0.1", false},
		"unique local":                 {"fd00::1", "fd12::1", true},
		"tunnels of people":            {"100.64.0.1", "100.100.1.1", true},
		"answers of a local proxy":     {"198.18.0.1", "198.19.0.1", true},
		"link local, the same":         {"169.254.1.1", "169.254.1.1", true},
		"link local and metadata":      {"169.254.1.1", "169.254.169.254", false},
		"link local, v6":               {"fe80::1%eth0", "fe80::2%eth0", false},
		"tunnels and metadata":         {"100.64.0.1", "100.100.100.200", false},
		"unique local and metadata":    {"fd00::1", "fd00:ec2::254", false},
		"6to4":                         {"2002::1", "2002:7f00:1::1", false},
		"NAT64":                        {"64:ff9b::1.1.1.1", "64:ff9b::10.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Together(netip.MustParseAddr(c.a), netip.MustParseAddr(c.b)); got != c.want {
				t.Errorf("Together(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
			}
		})
	}
	if Together(netip.Addr{}, netip.Addr{}) {
		t.Error("Together of two zero addresses = true, want false")
	}
}
