// Package command executes slash commands and words their answers. Parser, help, usage, suggestions and the check of
// rights come from the table in table.go. Changes of what the bot keeps go through package manage.
package command
