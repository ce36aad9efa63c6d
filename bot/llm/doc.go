// Package llm holds the one port to models: requests, responses, classified errors, and fair admission of calls.
//
// [Gate] bounds the calls under way. Waiting calls are served round-robin by conversation, and upkeep has a quarter of the
// places.
package llm
