// Package bench measures on this machine what the design promises, each figure beside one of the same machine: `lab bench`.
// Every row runs gateways as processes on one PostgreSQL that waits for its disk, with stand-ins for DingTalk and the model.
package bench
