package main

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// aptGet stands in for the package manager: it installs PostgreSQL, or fails, and lists the files that it finds.
const aptGet = `#!/bin/sh
set -e
case "$1" in update) exit 0 ;; esac
find "$DEPS_ROOT" -type f >"$DEPS_ROOT/../found"
[ ! -e "$DEPS_ROOT/../fail" ] || exit 100
mkdir -p "$DEPS_ROOT/usr/lib/postgresql/17/bin" "$DEPS_ROOT/etc/postgresql-common"
printf '#!/bin/sh\n' >"$DEPS_ROOT/usr/lib/postgresql/17/bin/initdb"
chmod +x "$DEPS_ROOT/usr/lib/postgresql/17/bin/initdb"
echo shipped >"$DEPS_ROOT/etc/postgresql-common/createcluster.conf"
`

// An installation of PostgreSQL leaves its package and nothing else on the machine, also where it fails.
func TestDepsLeavesThePackagesAlone(t *testing.T) {
	t.Parallel()
	const (
		conf, policy = "etc/postgresql-common/createcluster.d/programs-only.conf", "usr/sbin/policy-rc.d"
		etc, sbin    = "etc/hosts", "usr/sbin/adduser" // files of the machine
	)
	for _, tt := range []struct {
		name        string
		fail        bool
		before      []string
		found, left []string
	}{
		{
			name: "installed", before: []string{etc, sbin}, found: []string{etc, conf, sbin, policy},
			left: []string{etc, "etc/postgresql-common/createcluster.conf", "usr/lib/postgresql/17/bin/initdb", sbin},
		},
		{name: "failed", fail: true, before: []string{etc, sbin}, found: []string{etc, conf, sbin, policy}, left: []string{etc, sbin}},
		{name: "own settings", fail: true, before: []string{conf, policy}, found: []string{conf, policy}, left: []string{conf, policy}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			root, bin := filepath.Join(home, "root"), filepath.Join(home, "bin")
			write := func(path, text string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(filepath.Join(bin, "apt-get"), aptGet)
			write(filepath.Join(bin, "sudo"), "#!/bin/sh\nexec \"$@\"\n")
			for _, file := range tt.before {
				write(filepath.Join(root, file), "own")
			}
			if tt.fail {
				write(filepath.Join(home, "fail"), "")
			}
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join("..", "..", ".ci", "deps.sh"))
			cmd.Env = []string{"DEPS_ROOT=" + root, "PATH=" + bin + ":/usr/bin:/bin"}
			if out, err := cmd.CombinedOutput(); (err != nil) != tt.fail {
				t.Fatalf("deps.sh: %v, want a failure: %t\n%s", err, tt.fail, out)
			}
			text, err := os.ReadFile(filepath.Join(home, "found"))
			if err != nil {
				t.Fatal(err)
			}
			found := strings.Fields(strings.ReplaceAll(string(text), root+"/", ""))
			slices.Sort(found)
			if !slices.Equal(found, tt.found) {
				t.Errorf("the installation found %q, want %q", found, tt.found)
			}
			if left := entriesIn(t, root); !slices.Equal(left, tt.left) {
				t.Errorf("left on the machine: %q, want %q", left, tt.left)
			}
		})
	}
}

// installer stands in for the package manager: it notes the packages that it is given, and installs them. If its archive
// lacks one, as Ubuntu's lacks Chromium, it installs none.
const installer = `#!/bin/sh
set -e
case "$1" in update) exit 0 ;; esac
bin=$(dirname "$0")
if [ -e "$DEPS_ROOT/../ubuntu" ]; then
	case " $* " in *' chromium '*) echo "E: Package 'chromium' has no installation candidate" >&2; exit 100 ;; esac
fi
for package; do
	case "$package" in
	postgresql) mkdir -p "$DEPS_ROOT/usr/lib/postgresql/17/bin"; program="$DEPS_ROOT/usr/lib/postgresql/17/bin/initdb" ;;
	pgbouncer | chromium) program="$bin/$package" ;;
	fonts-noto-cjk) program="$bin/fonts" ;;
	*) continue ;;
	esac
	printf '#!/bin/sh\n' >"$program"
	chmod +x "$program"
	echo "$package" >>"$DEPS_ROOT/../installed"
done
`

// fontList stands in for fontconfig.
const fontList = `#!/bin/sh
[ ! -e "$(dirname "$0")/fonts" ] || echo 'Noto Sans CJK SC'
`

const (
	browser = "#!/bin/sh\n[ \"$1\" = --version ]\n"
	// snapStub is Ubuntu's package chromium-browser on a machine without the snap.
	snapStub = "#!/bin/sh\necho 'requires the chromium snap to be installed' >&2\nexit 1\n"
)

// Each use installs its own programs, once. A Chromium at another place is taken where CHROME names it. An archive without
// Chromium does not keep the other packages away.
func TestDepsInstallsWhatAUseNeeds(t *testing.T) {
	t.Parallel()
	const all = "postgresql pgbouncer chromium"
	for _, tt := range []struct {
		name, use string
		ubuntu    bool              // the archive has no Chromium
		programs  map[string]string // on the machine before, in the directory of PATH
		chrome    string            // a name of the programs, or a path
		installed string
		fails     bool
	}{
		{name: "serve", installed: "postgresql"},
		{name: "tests", use: "tests", installed: all},
		{name: "CHROME", use: "tests", programs: map[string]string{"mine": browser}, chrome: "mine", installed: "postgresql pgbouncer"},
		{name: "wrong CHROME", use: "tests", chrome: "/nowhere/chrome", installed: all, fails: true},
		{name: "CHROME is a stub", use: "tests", programs: map[string]string{"mine": snapStub}, chrome: "mine", installed: all, fails: true},
		{name: "screenshots", use: "screenshots", installed: "postgresql fonts-noto-cjk chromium"},
		{name: "Ubuntu", use: "tests", ubuntu: true, installed: "postgresql pgbouncer", fails: true},
		{
			name: "Ubuntu with the stub", use: "tests", ubuntu: true, programs: map[string]string{"chromium-browser": snapStub},
			installed: "postgresql pgbouncer", fails: true,
		},
		{
			name: "Ubuntu with Chrome", use: "tests", ubuntu: true, installed: "postgresql pgbouncer",
			programs: map[string]string{"chromium-browser": snapStub, "google-chrome": browser},
		},
		{name: "Ubuntu, screenshots", use: "screenshots", ubuntu: true, installed: "postgresql fonts-noto-cjk", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			root, bin := filepath.Join(home, "root"), filepath.Join(home, "bin")
			for _, dir := range []string{root, bin} {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			programs := map[string]string{"apt-get": installer, "fc-list": fontList, "sudo": "#!/bin/sh\nexec \"$@\"\n"}
			maps.Copy(programs, tt.programs)
			for name, text := range programs {
				if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"bash", "chmod", "dirname", "env", "id", "mkdir", "rm", "rmdir", "sh", "tee"} { // and no browser
				path, err := exec.LookPath(name)
				if err == nil {
					err = os.Symlink(path, filepath.Join(bin, name))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.ubuntu {
				if err := os.WriteFile(filepath.Join(home, "ubuntu"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			chrome := tt.chrome
			if tt.programs[chrome] != "" {
				chrome = filepath.Join(bin, chrome)
			}
			for range 2 {
				cmd := exec.CommandContext(t.Context(), "bash", filepath.Join("..", "..", ".ci", "deps.sh"), tt.use)
				cmd.Env = []string{"DEPS_ROOT=" + root, "PATH=" + bin, "CHROME=" + chrome}
				out, err := cmd.CombinedOutput()
				if (err != nil) != tt.fails || tt.fails != strings.Contains(string(out), "set CHROME") {
					t.Fatalf("deps.sh %s: %v, want a failure: %t\n%s", tt.use, err, tt.fails, out)
				}
				if tt.fails {
					break
				}
			}
			text, err := os.ReadFile(filepath.Join(home, "installed"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(strings.Fields(string(text)), " "); got != tt.installed {
				t.Errorf("deps.sh %s installs %q, want %q", tt.use, got, tt.installed)
			}
		})
	}
}

// entriesIn lists the files and the empty directories under a root, in order.
func entriesIn(t *testing.T, root string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		if d.IsDir() {
			inside, err := os.ReadDir(path)
			if err != nil || len(inside) > 0 {
				return err
			}
		}
		name, err := filepath.Rel(root, path)
		list = append(list, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
