// Package console stores what the console needs: paged lists, logins, and the audit of actions.
package console
