// Package bench is `lab bench`: it measures the design's targets on this machine. Rows run gateways as processes on
// one PostgreSQL that waits for its disk, with stand-ins for DingTalk and the model.
package bench
