// Package login identifies a person by DingTalk's login. An authorization page gives a code, the code a token of the
// person, the token their union id, and the union id the staff id in the application's organization.
//
// The exchange resembles OAuth 2.0 and is not OpenID Connect: there is no id token, and the code is exchanged as
// JSON.
package login
