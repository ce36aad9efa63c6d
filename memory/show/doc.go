// Package show writes memories, hits and events as text for a model, page by page, and as a person's export.
package show
