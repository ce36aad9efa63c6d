// Package identity finds ids and nicks: one person may have a staff id and an encrypted id.
package identity
