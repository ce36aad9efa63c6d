// Package gate admits calls of models fairly and counts them.
package gate
