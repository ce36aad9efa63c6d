package compaction

// CountPlain is Count as the library does it by itself, without the bound on unbroken runs: what Count's speed is
// measured against. Never give it what people wrote: its time is quadratic in such a run.
func (c *Counter) CountPlain(text string) int { return len(c.enc.EncodeOrdinary(text)) }
