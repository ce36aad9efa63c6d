package openaitest

import (
	"fmt"
	"slices"
	"strings"
)

// Behaviour is a named peculiarity of a provider. A server can have several at once. Each one may refuse a request, and change
// the answers to the others. The zero value changes nothing.
type Behaviour struct {
	// Name switches it on. NAME:ARGUMENT passes an argument, such as a word that is refused.
	Name string
	// Example is an argument for tests of all behaviours; empty: the behaviour takes none.
	Example string
	// Refuse returns the refusal of a request, if it is refused. It runs before the script.
	Refuse func(arg string, r Request) (refusal Reply, refused bool)
	// Cut returns the request as the model reads it. It runs before the script; the server keeps the whole one.
	Cut func(arg string, r Request) Request
	// RefuseEmbed is likewise for requests of vectors.
	RefuseEmbed func(arg string, r EmbedRequest) (refusal Reply, refused bool)
	// Change changes the answer to a request. It runs after the script, and not for errors.
	Change func(arg string, r Request, answer Reply) Reply
}

// Behaviours lists all behaviours.
func Behaviours() []Behaviour {
	return slices.Concat(formBehaviours, refusalBehaviours, outputBehaviours)
}

// FormBehaviours lists those of providers that answer the same request in another form.
func FormBehaviours() []Behaviour { return slices.Clone(formBehaviours) }

// behaving is a behaviour that is switched on.
type behaving struct {
	Behaviour
	arg string
}

// Behave replaces the behaviours of the server. Without names it is an ordinary provider again. It panics for an unknown name.
func (s *Server) Behave(names ...string) {
	var on []behaving
	for _, n := range names {
		name, arg, _ := strings.Cut(n, ":")
		at := slices.IndexFunc(Behaviours(), func(b Behaviour) bool { return b.Name == name })
		if at < 0 {
			panic(fmt.Sprintf("openaitest: no behaviour is named %q", name))
		}
		on = append(on, behaving{Behaviours()[at], arg})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaves = on
}

func (s *Server) formed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.behaves, func(on behaving) bool {
		return slices.ContainsFunc(formBehaviours, func(b Behaviour) bool { return b.Name == on.Name })
	})
}

// refusal is the first behaviour's that refuses the request.
func refusal(on []behaving, r Request) (Reply, bool) {
	for _, b := range on {
		if b.Refuse == nil {
			continue
		}
		if reply, refused := b.Refuse(b.arg, r); refused {
			return reply, true
		}
	}
	return Reply{}, false
}

func embedRefusal(on []behaving, r EmbedRequest) (Reply, bool) {
	for _, b := range on {
		if b.RefuseEmbed == nil {
			continue
		}
		if reply, refused := b.RefuseEmbed(b.arg, r); refused {
			return reply, true
		}
	}
	return Reply{}, false
}

func changed(on []behaving, r Request, answer Reply) Reply {
	for _, b := range on {
		if b.Change != nil && answer.status == 0 {
			answer = b.Change(b.arg, r, answer)
		}
	}
	return answer
}

func cutFor(on []behaving, r Request) Request {
	for _, b := range on {
		if b.Cut != nil {
			r = b.Cut(b.arg, r)
		}
	}
	return r
}
