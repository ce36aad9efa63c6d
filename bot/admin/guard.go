package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// guard refuses all requests without a token: one from the same machine may be passed on by a proxy.
func guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case token == "":
			http.Error(w, "set admin.token to use this", http.StatusForbidden)
		case !bears(r, token):
			w.Header().Set("WWW-Authenticate", `Bearer realm="ebb"`)
			http.Error(w, "the token of admin.token is needed", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Hashes are compared, so that timing reveals nothing.
func bears(r *http.Request, token string) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}
