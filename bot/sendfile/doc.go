// Package sendfile judges files that replies send: the type by the bytes, and a name that is safe for people's devices.
package sendfile
