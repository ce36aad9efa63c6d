// Package console stores paged lists, logins, and the audit of actions for the console.
package console
