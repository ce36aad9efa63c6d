package memory

import "time"

// Source says whose word a memory is, and whom it is about, for a model: a claim about another person is shown as one.
func (m Memory) Source() string {
	source := "speaker unknown 说话人不明"
	if m.SaidBy != "" {
		source = "said by " + string(m.SaidBy)
	}
	if m.SubjectID != "" && m.SubjectID != m.SaidBy {
		source += ", a claim about 说的是 " + string(m.SubjectID)
	}
	return source
}

// Time is when a memory was said, or stored where that is not known.
func (m Memory) Time() time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}
