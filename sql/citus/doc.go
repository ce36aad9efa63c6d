// Package citus distributes the tables over the nodes of a Citus cluster, and reports how they are distributed.
//
// Tables of a session are distributed by its key, memory by its scope: all in one colocation group, so that a session is on
// one node. Small tables that statements join with them are reference tables, with a copy on each node. Tables that no
// statement joins with them stay on the coordinator.
package citus
