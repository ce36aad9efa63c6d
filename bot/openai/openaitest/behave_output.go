package openaitest

// outputBehaviours are models that write other things than an answer, and providers that report wrong numbers.
var outputBehaviours = []Behaviour{
	{Name: "network_error_end", Change: func(_ string, r Request, a Reply) Reply {
		if r.Kind != Chat || len(a.calls) > 0 {
			return a
		}
		return a.Finish("network_error")
	}},
}
