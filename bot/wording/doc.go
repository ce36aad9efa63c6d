// Package wording holds the fixed words between people and the bot, in Chinese and English, and the choice of a
// language.
package wording
