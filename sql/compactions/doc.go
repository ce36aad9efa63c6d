// Package compactions commits compactions of a session's view, undoes them, and logs each attempt.
package compactions
