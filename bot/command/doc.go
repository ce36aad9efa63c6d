// Package command executes slash commands and words their answers. The table of commands is in table.go: the parser, help,
// usage, suggestions and the check of rights come from it. Changes of what the bot keeps go through package manage.
package command
