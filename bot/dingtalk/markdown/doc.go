// Package markdown parses the lines of a Markdown text and cuts a text into sound pieces. Webhook messages and cards
// share it. It does no I/O.
package markdown
