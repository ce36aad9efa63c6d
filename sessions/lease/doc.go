// Package lease holds the session leases of one replica and keeps them alive by a heartbeat.
package lease
