// Package replay compares the costs of compaction policies on recorded or synthetic conversations. Ebb's policies run
// in the real engine with a model that counts; those of other bots are simulated.
package replay
