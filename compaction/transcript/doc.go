// Package transcript writes events as data for a model: one JSON object a line between random fences, without credentials and
// encoded bytes.
package transcript
