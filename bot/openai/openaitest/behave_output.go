package openaitest

// outputBehaviours are models that write other things than an answer, and providers that report wrong numbers.
var outputBehaviours = []Behaviour{
	{Name: "network_error_end", Change: func(_ string, r Request, a Reply) Reply {
		return endingAs(r, a, "network_error")
	}},
	// The provider breaks off an answer that it began.
	{Name: "filter_end", Change: func(_ string, r Request, a Reply) Reply { return endingAs(r, a, "content_filter") }},
	// The reason of each end is in the provider's own words.
	{Name: "end_words", Example: "end_turn", Change: func(word string, r Request, a Reply) Reply { return endingAs(r, a, word) }},
}

// endingAs changes the reason of answers in words to questions.
func endingAs(r Request, a Reply, reason string) Reply {
	if r.Kind != Chat || len(a.calls) > 0 {
		return a
	}
	return a.Finish(reason)
}
