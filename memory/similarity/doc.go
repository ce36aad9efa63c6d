// Package similarity decides whether a text repeats another one, nearly or among other words. Forgetting depends on it.
//
// Ids come first: source ranges, turns, subjects and superseded_by lead to the rows that are known to belong together. Likeness is for
// texts to which no id leads. Each case has a test in sql/erasure that fails without it:
//
//   - Answers that repeat a fact in other turns and sessions (sayings). A model repeats recalled facts in its own sentences, and
//     nothing records which fact an answer used.
//   - The messages that said a fact, within its range (sayings, marks). A flush often knows its whole range alone. Without likeness
//     an erasure takes all messages of its author there, or none.
//   - Answers that repeat a message whose fact has other words ([Set.AddSource]).
//   - A fact that a flush saved once more in other words ([SameStatement]): both have the same events, as have other facts.
//   - The facts behind a consolidation ([Retells]). superseded_by alone leads to all facts of the group, and would delete those of
//     other members. The model is not asked for the sources of each result, and a wrong source would delete too much.
//   - Numbers and addresses in answers to others (marks).
//
// Common words of other members are compared too, so that a likeness alone takes nothing that another person said.
package similarity
