// Package command executes slash commands and words their answers. The names are in package wording.
package command
