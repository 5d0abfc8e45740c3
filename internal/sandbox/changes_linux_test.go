package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// changes are changes that programs make to files that they may write.
const changes = `
import os, stat, errno, sys, tempfile, threading
def mode(p, follow=True): return stat.S_IMODE(os.stat(p, follow_symlinks=follow).st_mode)
def is_(what, got, want):
    if got != want: sys.exit('%s: got %s, want %s' % (what, got, want))
def fails(what, want, f, *a, **k):
    try: f(*a, **k)
    except OSError as e: return is_(what, errno.errorcode[e.errno], want)
    sys.exit(what + ': want ' + want)
def attributes():
    os.setxattr('d/f', 'user.a', b'x'); is_('attribute', os.getxattr('d/f', 'user.a'), b'x')
    os.setxattr(fd, 'user.b', b'y' * 1000); os.setxattr('d/l', 'user.c', b'')
    is_('attributes', sorted(os.listxattr('d/f')), ['user.a', 'user.b', 'user.c'])
    os.removexattr('d/f', 'user.a'); os.removexattr(fd, 'user.b'); os.removexattr('d/abs', 'user.c'); is_('attributes in the end', os.listxattr('d/f'), [])
os.mkdir('d'); open('d/f', 'w').write('x'); os.symlink('f', 'd/l'); os.symlink(os.path.abspath('d/f'), 'd/abs')
os.chmod('d/f', 0o700); is_('chmod', mode('d/f'), 0o700)
os.chmod(os.path.abspath('d/f'), 0o711); is_('chmod of an absolute path', mode('d/f'), 0o711)
os.chmod('d/../d/./l', 0o712); is_('chmod of a link', mode('d/f'), 0o712)
os.chmod('d/abs', 0o713); is_('chmod of an absolute link', mode('d/f'), 0o713)
fd = os.open('d/f', os.O_RDONLY); os.fchmod(fd, 0o714); is_('fchmod', mode('d/f'), 0o714)
os.chmod('/proc/self/fd/%d' % fd, 0o715); is_('chmod by a descriptor', mode('d/f'), 0o715)
os.chmod('/dev/fd/%d' % fd, 0o714); is_('chmod by a descriptor of /dev', mode('d/f'), 0o714)
dir = os.open('d', os.O_RDONLY); os.chmod('f', 0o716, dir_fd=dir); is_('fchmodat', mode('d/f'), 0o716)
os.chmod('/proc/self/fd/%d/f' % dir, 0o717); is_('chmod below a descriptor', mode('d/f'), 0o717)
os.chmod('d', 0o2750); is_('chmod of a folder', mode('d'), 0o2750)
os.chmod('d', 0o1750); is_('chmod of a folder', mode('d'), 0o1750)
os.chmod('d', 0o750)
os.chown('d/f', os.getuid(), os.getgid()); os.lchown('d/l', -1, os.getgid()); os.fchown(fd, os.getuid(), -1)
os.utime('d/f', (5, 6)); is_('utime', (os.stat('d/f').st_atime, os.stat('d/f').st_mtime), (5, 6))
os.utime(fd, ns=(7, 8)); is_('futimens', os.stat('d/f').st_mtime_ns, 8)
os.utime('f', ns=(1, 123456789012), dir_fd=dir); is_('utimensat', os.stat('d/f').st_mtime_ns, 123456789012)
os.utime('d/l', (1, 2), follow_symlinks=False); is_('utime of a link', (os.lstat('d/l').st_mtime, os.stat('d/f').st_mtime_ns), (2, 123456789012))
os.utime('d/f'); is_('now', os.stat('d/f').st_mtime > 1e9, True)
attributes()
t = tempfile.mkstemp()[1]; os.chmod(t, 0o611); is_('chmod in TMPDIR', mode(t), 0o611); os.unlink(t)
fd = os.open('gone', os.O_RDWR | os.O_CREAT); os.unlink('gone'); os.fchmod(fd, 0o622); is_('fchmod of a file without a name', stat.S_IMODE(os.fstat(fd).st_mode), 0o622)
fails('chmod of nothing', 'ENOENT', os.chmod, 'nothing', 0o700)
fails('chmod of no path', 'ENOENT', os.chmod, '', 0o700)
fails('chmod below a file', 'ENOTDIR', os.chmod, 'd/f/x', 0o700)
fails('chmod of a closed descriptor', 'EBADF', os.fchmod, 99, 0o700)
fails('chmod of a long path', 'ENAMETOOLONG', os.chmod, 'x' * 5000, 0o700)
fails('chmod with set-user-ID', 'EPERM', os.chmod, 'd/f', 0o4755)
os.symlink('loop', 'loop'); fails('chmod of a loop', 'ELOOP', os.chmod, 'loop', 0o700)
wrong = []
def many(i):
    for n in range(100):
        p = 'd/f%d' % i; open(p, 'w').close(); os.chmod(p, 0o600 + n % 64)
        if mode(p) != 0o600 + n % 64: wrong.append(p)
threads = [threading.Thread(target=many, args=(i,)) for i in range(12)]
for t in threads: t.start()
for t in threads: t.join()
is_('threads', wrong, [])
for _ in range(20): # one that ends while it is answered leaves nothing behind
    pid = os.fork()
    if pid == 0:
        while True: os.chmod('d/f', 0o700)
    os.kill(pid, 9); os.waitpid(pid, 0)
os.chmod('d/f', 0o755); is_('chmod in the end', mode('d/f'), 0o755)
print('it works')
`

// A program changes modes, owners and times of the files that it can write, in each way
// that there is, as without a sandbox.
func TestChangesOfFiles(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, profile := range []string{"check", "guarded"} {
			t.Run(backend+"/"+profile, func(t *testing.T) {
				b, p := needs(t, backend), newPlace(t)
				b.Own = []string{p.own}
				script := changes
				if profile == "guarded" { // whose programs may
					script = strings.Replace(script, "fails('chmod with set-user-ID', 'EPERM', os.chmod, 'd/f', 0o4755)", "os.chmod('d/f', 0o4755)", 1)
				}
				if profile == "check" && (backend == Landlock || backend == Bwrap && os.Geteuid() == 0) {
					script = strings.Replace(script, "attributes()\nt =", "fails('attribute', 'ENOTSUP', os.setxattr, 'd/f', 'user.a', b'x')\nt =", 1)
				}
				if os.Geteuid() == 0 && backend != Landlock && profile == "check" { // nobody tells folders from files there
					script = strings.Replace(script, "os.chmod('d', 0o2750); is_('chmod of a folder', mode('d'), 0o2750)", "", 1)
				}
				got, err := b.start(t, p.policy(t, profile), p.ws, nil, python, "-c", script)
				if err != nil || got.code != 0 || !strings.Contains(got.out, "it works") {
					t.Errorf("code %d, output %q, error %v", got.code, got.out, err)
				}
			})
		}
	}
}

// Programs that set modes, owners and times work where the keeper makes these changes.
func TestProgramsThatChangeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ name, script string }{
		{"git", "git init -q g && cd g && echo x >a && chmod +x a && git add a && git -c user.name=a -c user.email=a@example.com commit -qm x && git clone -q . ../h && test -x ../h/a && git config a.b c && git gc -q"},
		{"tar", "mkdir -p o/d && echo x >o/d/f && ln -s d/f o/l && chmod 751 o/d && chmod 440 o/d/f && touch -d @5 o/d/f && tar cf o.tar o && mkdir x && tar xpf o.tar -C x && test $(stat -c %a-%Y x/o/d/f) = 440-5 && cp -a o y && test $(stat -c %a-%Y y/d/f) = 440-5 && chmod -R u+rwX x y"},
		{"make", "printf 'all:\\n\\tinstall -m 755 a b\\n\\tinstall -d -m 700 c\\n\\tchmod +x a\\n\\ttouch -r a b\\n' >Makefile && echo x >a && make -s && test -x a && test $(stat -c %a c) = 700 && sed -i s/x/y/ a && test -x a && gzip -k a"},
		{"npm", "mkdir lib && echo '#!/usr/bin/env node' >lib/b.js && echo \"console.log('ok')\" >>lib/b.js && echo '{\"name\":\"lib\",\"version\":\"1.0.0\",\"bin\":\"b.js\"}' >lib/package.json && echo '{\"name\":\"a\",\"version\":\"1.0.0\"}' >package.json && npm pack -s ./lib && npm install --offline --no-audit --no-fund ./lib-1.0.0.tgz && test $(node_modules/.bin/lib) = ok"},
		{"go", "printf 'module a\\n\\ngo 1.24\\n' >go.mod && printf 'package main\\n\\nfunc main() { println(1) }\\n' >a.go && go build -o a . && ./a && test -x a"},
		{"pip", "python3 -m venv v && mkdir -p lib/b && touch lib/b/__init__.py && mkdir -p w/b-1.dist-info w/b && echo 'x=1' >w/b/__init__.py && printf 'Metadata-Version: 2.1\\nName: b\\nVersion: 1\\n' >w/b-1.dist-info/METADATA && printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' >w/b-1.dist-info/WHEEL && printf '[console_scripts]\\nb-run = b:x\\n' >w/b-1.dist-info/entry_points.txt && printf 'b/__init__.py,,\\nb-1.dist-info/METADATA,,\\nb-1.dist-info/WHEEL,,\\nb-1.dist-info/entry_points.txt,,\\nb-1.dist-info/RECORD,,\\n' >w/b-1.dist-info/RECORD && (cd w && python3 -m zipfile -c ../b-1-py3-none-any.whl b b-1.dist-info) && v/bin/pip install -q --no-index ./b-1-py3-none-any.whl && test -x v/bin/b-run && v/bin/python -c 'import b'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, p := needs(t, Landlock), newPlace(t)
			if err := errors.Join(os.RemoveAll(p.ws+"/.git"), os.Remove(p.ws+"/fifo")); err != nil {
				t.Fatal(err)
			}
			program := map[string]string{"pip": "python3"}[c.name]
			if program == "" {
				program = c.name
			}
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
			pol := p.policy(t, "command")
			pol.Home, pol.Cache, b.Own = home, filepath.Join(p.dir, "cache"), []string{p.own}
			got, err := b.start(t, pol, p.ws, nil, "sh", "-c", c.script)
			if err != nil || got.code != 0 {
				t.Errorf("code %d, output %q, error %v", got.code, got.out, err)
			}
		})
	}
}
