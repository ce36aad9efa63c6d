// Package wording holds the fixed words between people and the bot: its phrases in Chinese and English, the choice of a
// language, and the names of commands.
package wording
