// Package transcript writes events as data for a model, without credentials and encoded bytes.
package transcript
