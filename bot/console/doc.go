// Package console serves the pages and the API for administrators. Pages are complete without script; htmx only
// refreshes parts. Nothing is loaded from another origin.
package console
