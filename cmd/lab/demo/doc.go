// Package demo is `lab demo`. It shows Ebb with real gateway processes and stand-ins for DingTalk
// and the model. The story checks what it shows.
package demo
