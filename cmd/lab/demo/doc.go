// Package demo shows Ebb in half a minute, with real gateway processes and stand-ins for DingTalk and the model: `lab
// demo`. The story checks what it shows.
package demo
