// Package periodic runs background work at intervals.
package periodic
