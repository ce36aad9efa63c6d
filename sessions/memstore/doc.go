// Package memstore is a sessions.Store in memory, without durability. It has fencing, deduplication and leases that
// expire. Replicas of a test share one.
package memstore
