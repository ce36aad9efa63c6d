// Package replay compares the costs of compaction policies on recorded or synthetic conversations. Ebb's policies run in the
// real engine with a model that counts; the policies of other bots are simulated. Package bench reports and draws the result.
package replay
