// Package manage holds the actions by which people change what the bot keeps. Commands in a chat and the command line
// act only through it. It checks the actor's right and the target; the texts stay with the caller.
package manage
