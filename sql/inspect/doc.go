// Package inspect reads a whole database for the chaos test, and disturbs it. The gateway does not link it.
package inspect
