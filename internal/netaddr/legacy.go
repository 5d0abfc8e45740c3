package netaddr

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// Numeric reads a host that the resolver of the system takes for an IPv4 address although
// it is not written as four decimal numbers (inet_aton): one to four parts, each decimal,
// octal (017) or hexadecimal (0x7f), the last of which fills what is left. So 0 is 0.0.0.0
// and 127.1 is 127.0.0.1. It reports false for every name, and for a usual address, too.
func Numeric(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, false
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		digits, base := strings.ToLower(part), 10
		switch {
		case strings.HasPrefix(digits, "0x"):
			digits, base = digits[2:], 16
			if digits == "" { // glibc reads it as zero
				digits = "0"
			}
		case len(digits) > 1 && digits[0] == '0':
			base = 8
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 32 - 8*i
		}
		n, err := strconv.ParseUint(digits, base, bits)
		if err != nil {
			return netip.Addr{}, false
		}
		sum = sum<<bits | n
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(sum)) //nolint:gosec // the parts have 32 bits
	return netip.AddrFrom4(b), true
}
