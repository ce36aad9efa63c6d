package view

import (
	"ebb/bot/parts"
)

// Builder decides what a view shows, from its parts.
type Builder struct {
	Choices Choices
	Words   Words
	Frames  Frames
	Sizes   Sizes
	Memory  Memory
	shared  *parts.Shared
	Quoter  Quoter
}

// New fails on an invalid order or tool schema.
func New(p *parts.Shared, quotes Quotes, facts Facts, commands Commands, o Options) (*Builder, error) {
	choices := Choices{shared: p, resolved: newResolved()}
	words := Words{shared: p, name: o.Name, commands: commands}
	frames, err := newFrames(p, choices, o)
	if err != nil {
		return nil, err
	}
	return &Builder{
		Choices: choices, Words: words, Frames: frames,
		Sizes:  Sizes{shared: p, choices: choices, frames: frames, Counted: newTokenCache(p.Counter)},
		Memory: Memory{shared: p, choices: choices, words: words, facts: facts, Remember: o.Remember},
		Quoter: Quoter{shared: p, choices: choices, words: words, quotes: quotes},
		shared: p,
	}, nil
}
