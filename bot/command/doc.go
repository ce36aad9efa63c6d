// Package command answers slash commands. The names are in package wording; [Handler] holds what each command does.
package command
