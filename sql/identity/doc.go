// Package identity finds ids, names and logs of people: one person may have a staff id and an encrypted id.
package identity
