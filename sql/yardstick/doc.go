// Package yardstick measures a server's smallest durable commit, and loads databases for benchmarks.
package yardstick
