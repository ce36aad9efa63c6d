package compaction

// Validate names what can't work, with the figures: a [FieldError] for each, joined.
func (s Settings) Validate() error { return s.Policy.Validate(s.Window) }
