// Package vectors stores the vectors of texts and finds the nearest, on a server with pgvector or here.
package vectors
