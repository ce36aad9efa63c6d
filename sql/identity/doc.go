// Package identity finds the ids and the nicks of people: one person may have a staff id and an encrypted id.
package identity
