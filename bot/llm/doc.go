// Package llm holds the one port to models: requests, responses, classified errors, and fair admission of calls.
package llm
