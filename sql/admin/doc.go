// Package admin lists sessions, events, compactions, debts and dead letters for administrators.
package admin
