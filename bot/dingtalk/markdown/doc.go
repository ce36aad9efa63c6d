// Package markdown parses the lines of a Markdown text and cuts a text into sound pieces, for webhook messages and
// cards. It does no I/O.
package markdown
