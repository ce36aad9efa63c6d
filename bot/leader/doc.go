// Package leader holds one stream connection among several replicas: the leader connects, and the others stand by.
package leader
