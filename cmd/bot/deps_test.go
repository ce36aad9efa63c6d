package main

import (
	"io/fs"
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
