// Package memstore is a sessions.Store in memory, with all that a database gives but durability: fencing, deduplication and
// leases that expire. Tests share one among several replicas.
package memstore
