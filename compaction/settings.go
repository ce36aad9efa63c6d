package compaction

// Validate names what can't work, with the figures: a *FieldError.
func (s Settings) Validate() error {
	if err := s.Window.Validate(); err != nil {
		return err
	}
	return s.Policy.Validate(s.Window)
}
