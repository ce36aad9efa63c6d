// Package document reads files of people as pages of text: text, Markdown, CSV, JSON, PDF, DOCX, XLSX and PPTX.
//
// The bytes are a stranger's. So [Sandbox] parses in a child process with limits of memory, processor time and wall time: a file that
// breaks a parser, or grows without end, ends the child. The child sees no environment, and the file only as its standard input.
// The kind of a file is that of its bytes and not of its name. Each refusal is a [Fault] with the reason.
package document
