package localpg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
)

type account struct {
	uid, gid int
	switched bool // we are root, and it is not
}

// PostgreSQL refuses to run as root, so root gets an unprivileged account.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("reading the ids of user %s: %w", name, err)
		}
		return &account{uid: uid, gid: gid, switched: true}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and no user postgres exists to run it")
}

// Only the search path is passed on. Ebb's secrets do not belong there, and variables of PostgreSQL clients would
// mislead the server.
func (a *account) prepareCommand(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} //nolint:gosec // the system's own ids
	}
}

// Only the account can enter the folder.
func (a *account) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return a.chown(dir)
}

func (a *account) chown(dir string) error {
	if !a.switched {
		return nil
	}
	return os.Chown(dir, a.uid, a.gid)
}

// The folder need not exist yet.
func (a *account) canEnter(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil {
			stat, ok := info.Sys().(*syscall.Stat_t)
			mode := info.Mode().Perm()
			switch {
			case ok && int(stat.Uid) == a.uid:
				mode >>= 6
			case ok && int(stat.Gid) == a.gid:
				mode >>= 3
			}
			if mode&1 == 0 {
				return false
			}
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// sharedHome holds data that a server's user could not reach elsewhere.
const sharedHome = "/var/lib/ebb"

// The place is another when the account can't enter dir.
func dataPath(dir string, a *account) (path string, moved bool, err error) {
	if path, err = filepath.Abs(dir); err != nil {
		return "", false, err
	}
	if !a.switched || a.canEnter(filepath.Dir(path)) {
		return path, false, nil
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(sharedHome, hex.EncodeToString(sum[:6])), true, nil
}

// placeData resolves links and creates the parent folder.
func placeData(ctx context.Context, dir string, a *account) (string, error) {
	path, moved, err := dataPath(dir, a)
	if err != nil {
		return "", err
	}
	if moved {
		zerolog.Ctx(ctx).Warn().Str("dir", dir).Str("data", path).
			Msg("PostgreSQL may not run as root, and its user cannot enter the data folder: the data is kept elsewhere")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the server's user has to pass; the data's own folder is closed
		return "", err
	}
	// The server works in the folder under its real name, which identifies a leftover.
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	path = filepath.Join(parent, filepath.Base(path))
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return path, nil
}

var errNoBinaries = errors.New("no PostgreSQL server is installed; install one (Debian, Ubuntu: apt-get install postgresql; " +
	"macOS: brew install postgresql), or set database.url to a server that runs elsewhere")

// Version is the version of the server that would make new data, such as "15".
func Version(ctx context.Context) (string, error) {
	bin, err := findBinaries(ctx, "")
	if err != nil {
		return "", err
	}
	return serverVersion(ctx, bin), nil
}

// The version is the one that made the data. For new data the search path comes before the newest in usual places.
func findBinaries(ctx context.Context, dir string) (string, error) {
	made, _ := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	want := strings.TrimSpace(string(made))
	var seen []string
	for _, bin := range binaryFolders() {
		version := serverVersion(ctx, bin)
		if version != "" && (want == "" || version == want) {
			return bin, nil
		}
		if version != "" && !slices.Contains(seen, version) {
			seen = append(seen, version)
		}
	}
	if len(seen) > 0 {
		return "", fmt.Errorf("the data was made by PostgreSQL %s, but only %s is installed; install postgresql-%s, or move the data away",
			want, strings.Join(seen, ", "), want)
	}
	return "", errNoBinaries
}

// The folders are those of Debian, Red Hat and Homebrew, besides the search path.
func binaryFolders() []string {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(target))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
		"/usr/local/pgsql/bin",
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return majorOf(b) - majorOf(a) })
		folders = append(folders, found...)
	}
	return folders
}

var majorRE = regexp.MustCompile(`\d+`)

func majorOf(path string) int {
	n, _ := strconv.Atoi(majorRE.FindString(path))
	return n
}

var versionRE = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// serverVersion is empty for an incomplete installation.
func serverVersion(ctx context.Context, bin string) string {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if m := versionRE.FindSubmatch(out); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}
