// Package rows has one row type for each thing that an installation lists. The API and the command line's --json show the same
// rows, so that a script reads both with the same names. Names of columns that others rely on are those of the tables.
//
// A field that only some readers fill is absent where it is not read. Rows have no text of a private chat that their source masked.
package rows
