// Package mcp offers the tools of MCP servers to the model, as [chat.Tool]. A server is a child process (stdio) or an address
// (streamable HTTP), by the official SDK.
//
// A failure costs one call. A call has a deadline, and the result of a slow, dead or broken server is a sentence for the model.
// The connection is made again after growing pauses, and the tools of a server stay offered meanwhile. Their list changes only when
// the server announces another one, so that prompt caches hold.
//
// Texts of servers are data. Names and descriptions of tools are bounded, and a description can't grow into a second prompt.
// Child processes see no environment of the bot but PATH, HOME, LANG, TMPDIR and the configured variables: its secrets stay its own.
package mcp
