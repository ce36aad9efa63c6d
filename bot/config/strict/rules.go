package strict

import "reflect"

// Rules are what a program says of its keys besides their types.
type Rules interface {
	// Canonical returns the name in force of a key of the struct t, for one that may be an older name.
	Canonical(t reflect.Type, key string) string
	// Removed returns the reason for which a key of earlier files is no more, or "".
	Removed(t reflect.Type, path, key string) string
	// IsLater reports a key that the program reads afterwards by itself, such as settings that begin as a copy of the common ones.
	IsLater(t reflect.Type, key string) bool
	// Refuse returns the problem of a text as the file has it, with its variables, for a field of type t; or "".
	Refuse(path, text string, t reflect.Type) string
}

// NoRules say nothing.
type NoRules struct{}

// Canonical returns the key.
func (NoRules) Canonical(_ reflect.Type, key string) string { return key }

// Removed returns "".
func (NoRules) Removed(reflect.Type, string, string) string { return "" }

// IsLater returns false.
func (NoRules) IsLater(reflect.Type, string) bool { return false }

// Refuse returns "".
func (NoRules) Refuse(string, string, reflect.Type) string { return "" }
