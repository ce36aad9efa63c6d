// Package files keeps the files that the people of a session asked to keep. Their texts are the pages that package media stored. The terms
// of kept pages have an index of their own, so that a search finds them beside facts and the log.
package files
