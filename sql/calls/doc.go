// Package calls counts calls to the chat platform's open API by month and API.
package calls
