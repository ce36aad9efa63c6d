package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker in a release: -X main.version=1.2.3.
var version = "dev"

// versionCmd is bot version.
type versionCmd struct{}

// Run prints the version, the commit if the build knows it, and the Go release.
func (versionCmd) Run(app *App) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	_, err := fmt.Fprintf(app.Stdout, "bot %s%s %s\n", version, commit, runtime.Version())
	return err
}
