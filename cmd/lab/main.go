// Command lab is the equipment around Ebb: the demo, the benchmarks, fault injection and the evaluation of search. It
// runs the bot as a process; the bot links nothing of it.
package main

import (
	_ "time/tzdata" // the zones of agent.timezone, for machines without zoneinfo

	"ebb/cmd/lab/bench"
	"ebb/cmd/lab/chaos"
	"ebb/cmd/lab/demo"
	"ebb/cmd/lab/eval"
	"ebb/cmd/lab/rig"
)

type commands struct {
	rig.Globals

	Demo  demo.Command  `cmd:"" help:"Show the whole of Ebb on this machine, with nothing to configure: DingTalk and model are stand-ins."`
	Bench bench.Command `cmd:"" help:"Measure on this machine what the design promises."`
	Chaos chaos.Command `cmd:"" help:"Run fault injection and check that nothing is lost."`
	Tools chaos.Tools   `cmd:"" hidden:"" help:"Serve the tools of fault injection on the standard input and output."`
	Eval  eval.Command  `cmd:"" help:"Search data with known answers through the bot's own search."`
}

func main() { rig.Main(&commands{}) }
