// Package erase removes from summaries what erased events said.
package erase
