// Package redact finds the credentials in a text and masks them.
//
// A credential is known by its shape (sk-…, AKIA…), its frame (basic auth, bearer, account/password), or the name in
// front of it (password, 密码, token).
package redact
