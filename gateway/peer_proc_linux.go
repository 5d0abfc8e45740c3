package gateway

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// ownsSocketByTable asks the kernel's socket tables, where sock_diag is not to be
// had (some sandboxes forbid netlink). They list the remote end as somebody's
// local one.
func ownsSocketByTable(remote, local *net.TCPAddr) (inode uint32, ok bool) {
	uid := strconv.Itoa(os.Getuid())
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if inode, found, ok := scanSockets(table, remote, local, uid); found {
			return inode, ok
		}
	}
	return 0, false
}

func scanSockets(table string, remote, local *net.TCPAddr, uid string) (inode uint32, found, ok bool) {
	f, err := os.Open(table) //nolint:forbidigo,gosec // a kernel file
	if err != nil {
		return 0, false, false
	}
	defer func() { _ = f.Close() }()
	wantLocal, wantRemote := hexAddr(remote, table), hexAddr(local, table)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == wantLocal && fields[2] == wantRemote {
			n, err := strconv.ParseUint(fields[9], 10, 32)
			return uint32(n), true, err == nil && fields[7] == uid
		}
	}
	return 0, false, false
}

// hexAddr writes an address as the kernel's tables do: 32-bit words in host
// order, which is little-endian on every platform that yaya is built for.
func hexAddr(a *net.TCPAddr, table string) string {
	ip := a.IP.To4()
	if strings.HasSuffix(table, "6") {
		ip = a.IP.To16()
	}
	var b strings.Builder
	for i := 0; i+4 <= len(ip); i += 4 {
		b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{ip[i+3], ip[i+2], ip[i+1], ip[i]})))
	}
	return fmt.Sprintf("%s:%04X", b.String(), a.Port)
}
