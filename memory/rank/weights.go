package rank

import (
	"math"
	"time"
)

// The weights were measured on long chats of people and of one person with an assistant, in English and Chinese.
const (
	reach         = 2         // events before and after one that support it
	nextShare     = 0.2       // share of the score of the event before or after
	secondShare   = 0.15      // share of the score of those two away
	answerShare   = 0.4       // more of the one before, if it is a question
	questionPart  = 0.8       // share of a question's own score: its answer is wanted
	sittingShare  = 1.0       // share of the score of the whole sitting
	sittingGap    = time.Hour // silence between two sittings
	personFactor  = 2.0
	timeFactor    = 1.2 // for a text with a time in it, if the query asks when
	roleFactor    = 1.5
	memoryFactor  = 1.6 // a memory was worth keeping, and has no neighbours to support it
	outdatedPart  = 0.05
	looseScore    = 0.1  // for texts in the named time or by the named person, in a query without terms
	leastOfBest   = 0.05 // share of the best text's score
	feedbackDocs  = 5
	feedbackTerms = 8
	feedbackPart  = 0.1
)

// This is the idf of BM25, for a term of df of n texts.
func termRarity(n, df float64) float64 { return math.Log(1 + (max(n, df)-df+0.5)/(df+0.5)) }
