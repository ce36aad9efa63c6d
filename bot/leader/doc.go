// Package leader holds one stream connection among several replicas: the leader connects, and the others stand by.
//
// Correctness does not depend on a single connection: with two, each message arrives at one of them and is stored once. A
// connection is given up only when another replica is connected.
package leader
