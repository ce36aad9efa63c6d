// Package nodetest installs packages of npm, for programs that run the reference implementation of a protocol.
package nodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Install writes the files, by name, into a temporary folder, and installs what package.json among them names. It needs node and npm. Their
// output goes to log. The caller removes the folder.
func Install(ctx context.Context, log io.Writer, files map[string][]byte) (dir string, err error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is not installed (Debian: apt-get install nodejs npm)", program)
		}
	}
	if dir, err = os.MkdirTemp("", "conformance-"); err != nil {
		return "", fmt.Errorf("making a folder for packages of npm: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", fmt.Errorf("writing %s: %w", name, errors.Join(err, os.RemoveAll(dir)))
		}
	}
	npm := exec.CommandContext(ctx, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir, npm.Stdout, npm.Stderr = dir, log, log
	if err := npm.Run(); err != nil {
		return "", fmt.Errorf("installing with npm: %w", errors.Join(err, os.RemoveAll(dir)))
	}
	return dir, nil
}
