package openai

import (
	"strconv"
)

// property is a deviation of an endpoint and model from the ordinary request. A refusal teaches it, for the life of the
// process: providers change slowly, and a wrong guess costs one refused request.
type property uint

const (
	emptyText property = 1 << iota // in place of null, beside tool calls
	someText
	wantsThoughts
	noStreamOptions
	noStream
	noSystem
	noTools
	mergedRoles
	lastUser
	shortIDs
	textParts
	plainSchemas
	otherLimit
	noLimit
	longAnswer // a short limit of an answer is refused
	noPictures
)

// forms are the learned properties of a model. The zero value is the ordinary request.
type forms struct {
	set     property
	output  int      // the longest answer that may be requested; 0: no bound is known
	least   int      // the lowest limit of an answer; 0: no bound is known
	without []string // top-level fields that are left out
	way     rung     // the strictest accepted way to force a tool
	room    int      // for an answer beside this call's messages; 0: not known. It is not kept.
}

func (f forms) has(p property) bool { return f.set&p != 0 }

// words describe the properties to operators.
var words = []struct {
	property
	text string
}{
	{emptyText, "wants an empty content beside tool calls"},
	{someText, "wants words beside tool calls"},
	{wantsThoughts, "wants its reasoning back"},
	{noStreamOptions, "takes no stream_options"},
	{noStream, "takes no stream"},
	{noSystem, "takes no system message"},
	{noTools, "has no tools: memory is searched before each answer, and saved by JSON"},
	{mergedRoles, "wants alternating roles"},
	{lastUser, "wants a user message at the end"},
	{shortIDs, "wants call ids of nine letters and digits"},
	{textParts, "wants the content in parts"},
	{plainSchemas, "takes plain schemas of tools only"},
	{otherLimit, "has another field for the limit of an answer"},
	{noLimit, "takes no limit of an answer"},
	{noPictures, "sees no pictures"},
}

// describeForms lists the properties, without the words of any provider.
func (f forms) describeForms() []string {
	var all []string
	for _, w := range words {
		if f.has(w.property) {
			all = append(all, w.text)
		}
	}
	if f.output > 0 {
		all = append(all, "answers at most "+strconv.Itoa(f.output)+" tokens")
	}
	if f.least > 0 {
		all = append(all, "takes no limit of an answer below "+strconv.Itoa(f.least)+" tokens")
	}
	for _, field := range f.without {
		all = append(all, "takes no "+field)
	}
	if f.way > rungNamed {
		all = append(all, "a tool is forced by: "+f.way.String())
	}
	return all
}
