// Package show writes memories, search hits and events of the log as text for a model, page by page, and as a person's
// export. Paths are virtual: no path names a file.
package show
