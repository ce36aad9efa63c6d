package written

// Config is the part of a request that decides what its answer may be. The zero value leaves only repetitions to find.
type Config struct {
	// Turn says that people read the answer. Names, calls and marks of templates are looked for only then.
	Turn bool
	// Self is the bot's name, and Speakers are the names before people's messages, as the request shows them. Askers are the
	// speakers of the messages to answer.
	Self             string
	Speakers, Askers []string
	// Question is the messages to answer: the label of a role that it has is a word of the answer.
	Question string
	// Tools are the offered tools.
	Tools []Tool
}

// Tool is an offered tool with the JSON schema of its arguments.
type Tool struct {
	Name   string
	Schema map[string]any
}

// Kind is what was corrected, as the label of a metric.
type Kind string

// The kinds of corrections.
const (
	Called   Kind = "text_call"     // a call written as text became a call
	Garbled  Kind = "unusable_call" // a call written as text was removed
	Labelled Kind = "label"         // a name, a time or a quote before the answer was removed
	Spoken   Kind = "other_speaker" // words in another's name, and all behind them, were cut
	Leaked   Kind = "template"      // a turn of the model's template was cut, or its mark before the answer
	Repeated Kind = "repetition"    // words without end were cut
)

// Kinds lists the kinds of corrections.
func Kinds() []Kind { return []Kind{Called, Garbled, Labelled, Spoken, Leaked, Repeated} }
