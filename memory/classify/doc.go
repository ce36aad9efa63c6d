// Package classify judges a text by its words alone, without a model and without storage. It finds junk, instructions that
// pose as facts, personal data and credentials. It also finds texts worth a flush, and questions about earlier talk.
//
//	junk.go         [Junk]
//	instruction.go  [Instruction]
//	sensitive.go    [Sensitive]
//	redacted.go     [HasCredential], [DropRedacted]
//	lead.go         [Refuse] combines them, with and without a lead such as "记住：" or a speaker's name
//	marks.go        [Candidate], [AsksToRemember], [RecallQuestion], [SelfReference]
//	style.go        [AnswerStyle]
//	rules.tsv       the rules of all these, each with a text that it must match and one that it must not
//	rules.go        names the lists of rules.tsv; package ebb/sessions/rules reads them
//	phrases.go      lists of expressions, indexed by the words that a match must contain
package classify
