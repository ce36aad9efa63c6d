// Package vectors stores vectors and finds the nearest, on a server with pgvector or here.
package vectors
