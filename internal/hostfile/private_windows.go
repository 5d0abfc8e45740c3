package hostfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Exposed returns how others than its owner can get at an open file or folder, such as "an
// access list with BUILTIN\Users", and the command that ends that; both are "" for a
// private one. An entry that this process does not understand counts as one of others.
func Exposed(f *os.File) (how, fix string, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return "", "", err
	}
	var sd *windows.SECURITY_DESCRIPTOR
	cerr := raw.Control(func(h uintptr) {
		sd, err = windows.GetSecurityInfo(windows.Handle(h), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	})
	if cerr != nil {
		return "", "", cerr
	}
	var others []string
	if err == nil {
		others, err = strangers(sd)
	}
	if err != nil {
		return "", "", &fs.PathError{Op: "read the access list of", Path: f.Name(), Err: err}
	}
	if len(others) == 0 {
		return "", "", nil
	}
	inherit := ""
	if info, err := f.Stat(); err == nil && info.IsDir() {
		inherit = "(OI)(CI)"
	}
	return "an access list with " + strings.Join(others, ", "), fmt.Sprintf(`icacls "%s" /inheritance:r /grant:r "%%USERNAME%%:%sF" "*S-1-5-18:%sF"`, filepath.Clean(f.Name()), inherit, inherit), nil
}

// strangers are the accounts that a descriptor gives a right, but for the owner, the user of
// this process, the system and administrators. A descriptor without a list gives all rights
// to everybody.
func strangers(sd *windows.SECURITY_DESCRIPTOR) (names []string, err error) {
	me, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return nil, err
	}
	if !friend(owner, me.User.Sid) {
		names = append(names, account(owner)+" as its owner")
	}
	list, _, err := sd.DACL()
	if err != nil || list == nil {
		return append(names, "everybody"), nil //nolint:nilerr // none is there
	}
	for n := range list.AceCount {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, uint32(n), &ace); err != nil {
			return nil, err
		}
		switch ace.Header.AceType {
		case windows.ACCESS_DENIED_ACE_TYPE:
			continue
		case windows.ACCESS_ALLOWED_ACE_TYPE:
		default:
			names = append(names, fmt.Sprintf("an entry of kind %d", ace.Header.AceType))
			continue
		}
		if sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart)); ace.Mask != 0 && !friend(sid, me.User.Sid) && !sid.IsWellKnown(windows.WinCreatorOwnerSid) && !sid.IsWellKnown(windows.WinCreatorOwnerRightsSid) {
			names = append(names, account(sid))
		}
	}
	return names, nil
}

// friend reports whether an account gets at this user's files anyway.
func friend(sid, me *windows.SID) bool {
	return sid != nil && (sid.Equals(me) || sid.IsWellKnown(windows.WinLocalSystemSid) || sid.IsWellKnown(windows.WinBuiltinAdministratorsSid))
}

// account is the name of an account for people.
func account(sid *windows.SID) string {
	if sid == nil {
		return "nobody"
	}
	name, domain, _, err := sid.LookupAccount("")
	if err != nil {
		return sid.String()
	}
	if domain != "" {
		name = domain + `\` + name
	}
	return name
}

// MakePrivate gives an existing folder an access list of its own: the user of this process and
// the system, for it and everything in it that inherits.
func MakePrivate(path string) error {
	me, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return err
	}
	sd, err := windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;" + me.User.Sid.String() + ")(A;OICI;FA;;;SY)")
	if err != nil {
		return err
	}
	list, _, err := sd.DACL()
	if err != nil {
		return err
	}
	if err := windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil); err != nil {
		return &fs.PathError{Op: "make private", Path: path, Err: err}
	}
	return nil
}
