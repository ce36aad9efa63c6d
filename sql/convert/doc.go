// Package convert turns rows of the database into the types of package sessions and package memory.
package convert
