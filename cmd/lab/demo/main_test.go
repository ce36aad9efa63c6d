package demo

import (
	"testing"

	"ebb/cmd/lab/labtest"
	"ebb/cmd/lab/rig"
)

// grammar is that of a lab with this command alone.
type grammar struct {
	rig.Globals

	Demo Command `cmd:""`
}

func TestMain(m *testing.M) { labtest.RunTests(m, &grammar{}) }
