// Package console serves the pages and the API for administrators: what conversations hold, what was compacted and why,
// what was saved, and the way to take it back.
//
// Pages are complete without script; htmx only refreshes a part of the overview. Nothing is loaded from another origin.
package console
