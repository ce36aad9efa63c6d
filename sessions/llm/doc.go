// Package llm is the one port to models: requests, responses and classified errors. Turns, flushes, summaries and consolidations make
// their calls through it.
package llm
