// Package redact finds the credentials in a text and masks them.
//
// A credential is known by its shape (sk-…, AKIA…), by what frames it (basic auth, bearer, account/password), or by the name
// in front of it (password, 密码, token). Text about credentials is not a credential.
package redact
