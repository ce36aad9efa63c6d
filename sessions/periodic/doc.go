// Package periodic runs background work at intervals and polls conditions.
package periodic
