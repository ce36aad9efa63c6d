// Package access decides who may talk to the bot.
package access
