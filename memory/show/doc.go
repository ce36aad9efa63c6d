// Package show writes memories, search hits and events of the log as text for a model, page by page, and as the export that a
// person asks for. Paths are virtual: a path never names a file.
package show
