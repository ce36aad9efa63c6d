// Package yardstick measures a server's smallest durable commit, and loads databases for benchmarks. The gateway does not
// link it.
package yardstick
