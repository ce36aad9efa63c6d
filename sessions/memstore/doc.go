// Package memstore has the stores of package sessions in memory, without durability. It has fencing, deduplication and leases that
// expire. Replicas of a test share one.
package memstore
