// Package memory keeps what matters beyond any conversation's window: facts, drawn out of the log before compaction
// ([Flusher]) or saved by the model in its turn, each with its scope, its subject and the events it came from.
//
// A flush is an extraction over a range of the log, not a turn: it reads the events after the session's flush cursor,
// forces the model to call memory_save, and succeeds only with a stored row or an explicit "nothing to save". Its
// messages enter neither the log nor the view, so that a late flush is as good as an early one. What could not be
// flushed is owed, and read from the log later.
//
// # Decisions
//
// The model labels a fact, code decides its scope ([Route]): no text can make a fact readable to more people.
// Known facts are shown after the transcript, so that old ones never crowd out new ones.
// Nicks are what people choose to write: in the roster an id or a label always wins over them.
package memory
