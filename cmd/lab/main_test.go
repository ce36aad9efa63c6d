package main

import (
	"strings"
	"testing"

	"ebb/cmd/lab/labtest"
	"ebb/cmd/lab/rig"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args, stdout, stderr string
		code                       int
	}{
		{"help", "--help", "eval", "", 0},
		{"no such command", "torment", "", "lab: unexpected argument torment", rig.ExitUsage},
		{"no such row", "bench --only speed", "", `lab: bench: there is no row "speed"`, rig.ExitUsage},
		{"no bot", "--program /nowhere/bot demo --once", "", "lab: no bot to run (stat /nowhere/bot: no such file or directory)", rig.ExitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := labtest.RunCommand(t, &commands{}, strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}
