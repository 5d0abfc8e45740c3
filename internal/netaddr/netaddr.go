// Package netaddr tells the addresses of the public internet from all others, names of hosts
// from other words, and requests of a client from those that a proxy passed on.
//
// The table is that of the IANA IPv4 and IPv6 Special-Purpose Address Registries
// (RFC 6890), with the blocks that were withdrawn from them or stand in RFC 4291
// alone. Of IPv6 only 2000::/3 is given out for unicast; the rest is not public
// whether or not the table has it.
package netaddr

import (
	"net/netip"
	"slices"
)

// Block is a block of addresses with a purpose of its own.
type Block struct {
	Prefix netip.Prefix
	Name   string // as the registry has it
	RFC    string
}

func block(prefix, name, rfc string) Block { return Block{netip.MustParsePrefix(prefix), name, rfc} }

// blocks holds the more specific of two blocks first. Anycast blocks that a
// registry calls globally reachable are among them: they lead to whatever is
// nearest, such as the router of this network.
var blocks = []Block{
	block("0.0.0.0/8", "this network", "RFC 791"),
	block("10.0.0.0/8", "private use", "RFC 1918"),
	block("100.64.0.0/10", "shared address space", "RFC 6598"),
	block("127.0.0.0/8", "loopback", "RFC 1122"),
	block("169.254.0.0/16", "link local", "RFC 3927"),
	block("172.16.0.0/12", "private use", "RFC 1918"),
	block("192.0.0.0/29", "IPv4 service continuity", "RFC 7335"),
	block("192.0.0.8/32", "IPv4 dummy address", "RFC 7600"),
	block("192.0.0.9/32", "port control protocol anycast", "RFC 7723"),
	block("192.0.0.10/32", "TURN anycast", "RFC 8155"),
	block("192.0.0.170/31", "NAT64 discovery", "RFC 7050"),
	block("192.0.0.0/24", "IETF protocol assignments", "RFC 6890"),
	block("192.0.2.0/24", "documentation (TEST-NET-1)", "RFC 5737"),
	block("192.31.196.0/24", "AS112", "RFC 7535"),
	block("192.52.193.0/24", "AMT", "RFC 7450"),
	block("192.88.99.0/24", "6to4 relay anycast, withdrawn", "RFC 7526"),
	block("192.168.0.0/16", "private use", "RFC 1918"),
	block("192.175.48.0/24", "direct delegation AS112", "RFC 7534"),
	block("198.18.0.0/15", "benchmarking", "RFC 2544"),
	block("198.51.100.0/24", "documentation (TEST-NET-2)", "RFC 5737"),
	block("203.0.113.0/24", "documentation (TEST-NET-3)", "RFC 5737"),
	block("224.0.0.0/4", "multicast", "RFC 5771"),
	block("255.255.255.255/32", "limited broadcast", "RFC 919"),
	block("240.0.0.0/4", "reserved", "RFC 1112"),

	block("::/128", "unspecified", "RFC 4291"),
	block("::1/128", "loopback", "RFC 4291"),
	block("::/96", "IPv4-compatible, withdrawn", "RFC 4291"),
	block("::ffff:0:0/96", "IPv4-mapped", "RFC 4291"),
	block("::ffff:0:0:0/96", "IPv4-translated (SIIT)", "RFC 2765"),
	block("64:ff9b::/96", "IPv4/IPv6 translation (NAT64)", "RFC 6052"),
	block("64:ff9b:1::/48", "IPv4/IPv6 translation, local", "RFC 8215"),
	block("100::/64", "discard only", "RFC 6666"),
	block("100:0:0:1::/64", "dummy prefix", "RFC 9780"),
	block("200::/7", "NSAP, withdrawn", "RFC 4048"),
	block("2001::/32", "Teredo", "RFC 4380"),
	block("2001:1::1/128", "port control protocol anycast", "RFC 7723"),
	block("2001:1::2/128", "TURN anycast", "RFC 8155"),
	block("2001:1::3/128", "DNS-SD registration anycast", "RFC 9665"),
	block("2001:2::/48", "benchmarking", "RFC 5180"),
	block("2001:3::/32", "AMT", "RFC 7450"),
	block("2001:4:112::/48", "AS112", "RFC 7535"),
	block("2001:10::/28", "ORCHID, withdrawn", "RFC 4843"),
	block("2001:20::/28", "ORCHIDv2", "RFC 7343"),
	block("2001:30::/28", "drone remote identification", "RFC 9374"),
	block("2001::/23", "IETF protocol assignments", "RFC 2928"),
	block("2001:db8::/32", "documentation", "RFC 3849"),
	block("2002::/16", "6to4", "RFC 3056"),
	block("2620:4f:8000::/48", "direct delegation AS112", "RFC 7534"),
	block("3ffe::/16", "6bone, withdrawn", "RFC 3701"),
	block("3fff::/20", "documentation", "RFC 9637"),
	block("5f00::/16", "segment routing", "RFC 9602"),
	block("fc00::/7", "unique local", "RFC 4193"),
	block("fe80::/10", "link local", "RFC 4291"),
	block("fec0::/10", "site local, withdrawn", "RFC 3879"),
	block("ff00::/8", "multicast", "RFC 4291"),
}

var (
	unicast6 = netip.MustParsePrefix("2000::/3")
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	// nets are the blocks of networks that people run: an address in one of them
	// says something about another address in it.
	nets = map[string]bool{"loopback": true, "private use": true, "shared address space": true, "unique local": true, "benchmarking": true}
	// credentials are the addresses at which clouds (Alibaba, AWS, Google) hand out credentials in
	// such a block. The address that all have, 169.254.169.254, is link local.
	credentials = []netip.Addr{netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254")}
)

// of returns the block that an address is in, nil for none. The zone of an
// address says nothing about what it is, and would match no prefix.
func of(a netip.Addr) *Block {
	for i := range blocks {
		if blocks[i].Prefix.Contains(a) {
			return &blocks[i]
		}
	}
	return nil
}

func bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Public reports whether an address is one of the public internet: global unicast,
// and in no block with a purpose of its own. An IPv4-mapped address, and one of
// NAT64, is what the IPv4 address in it is: in a network without IPv4 every server
// that has nothing else is reached so, and RFC 6052 forbids addresses in it that
// are not global. The zero address is not public.
func Public(a netip.Addr) bool {
	a = bare(a)
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.IsValid() && of(a) == nil && (a.Is4() || unicast6.Contains(a))
}

// Guarded reports whether an address is link local, or one at which clouds hand out credentials:
// nobody is told how to open it to an agent. An IPv4-mapped address, and one of NAT64, is what the IPv4
// address in it is.
func Guarded(a netip.Addr) bool {
	a = bare(a)
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.IsLinkLocalUnicast() || slices.Contains(credentials, a)
}

// Together reports whether two addresses that are not public are of the same
// network, as far as addresses can tell: the same address, both of this machine,
// or both in the same block of private networks. Link-local addresses and others at
// which clouds hand out credentials are of a network with nothing else.
func Together(a, b netip.Addr) bool {
	a, b = bare(a), bare(b)
	if !a.IsValid() || !b.IsValid() {
		return false
	}
	if a == b || (a.IsLoopback() && b.IsLoopback()) {
		return true
	}
	if slices.Contains(credentials, a) || slices.Contains(credentials, b) {
		return false
	}
	x, y := of(a), of(b)
	return x != nil && x == y && nets[x.Name]
}
