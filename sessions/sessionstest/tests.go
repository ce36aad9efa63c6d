package sessionstest

import "testing"

// TestStore checks that a store does what sessions.Store promises. open makes a new storage for each test.
func TestStore(t *testing.T, open func(t *testing.T) Harness) {
	t.Parallel()
	for _, tt := range storeTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(&suite{T: t, Harness: open(t), ctx: t.Context()})
		})
	}
}

// storeTests are the tests of a store, each with a fresh one.
var storeTests = []struct {
	name string
	run  func(*suite)
}{
	{"accepting stores and dedupes", testAccept},
	{"a session's state is read alone", testSession},
	{"data that can never be stored are refused permanently", testRefused},
	{"accepting the same message at once stores it once", testAcceptAtOnce},
	{"accepting what databases dislike", testAcceptOddText},
	{"a conversation is private only where that was said, and only so far", testAcceptKind},
	{"the staff id of a sender is learned from frames with both ids", testStaffIDs},
	{"a sender id with two staff ids is no member's", testStaffClash},
	{"accepting takes free leases only", testAcceptLease},
	{"a turn sees pending messages in order and up to the limit", testBeginOrder},
	{"a turn takes messages in the order in which they were sent", testBeginSent},
	{"a turn takes no more bytes than it may, and at least one message", testBeginBytes},
	{"the death of a process is an attempt of what was in its turns", testAttemptsOfTheDead},
	{"a death is seen also where a message finds it", testAttemptsOfAccept},
	{"a lease that was given up or freed counts no attempt", testAttemptsSpared},
	{"what a turn leaves is in no turn", testAttemptsOfARest},
	{"a turn that broke is an attempt of the blamed", testAttemptsBlamed},
	{"a process that comes back takes its attempt back", testAttemptsOfTheFrozen},
	{"a commit gives places in the order given", testCommitPlaces},
	{"a commit keeps the outcome of a command", testCommitOutcome},
	{"a commit is whole or nothing", testCommitWhole},
	{"a commit sets dead letters aside", testCommitDead},
	{"a commit keeps the counters", testCommitCounters},
	{"spendings add up by kind", testSpent},
	{"a chosen scope belongs to the group", testScopes}, {"the session of a waiting sender is found", testWaitingPlace},
	{"turns are admitted up to the limits", testAdmit},
	{"a turn that the group's limit stops counts nowhere", testAdmitGroup},
	{"a limit of senders without a staff id stops them alone", testAdmitUnidentified}, {"turns at one moment are admitted up to the limit", testAdmitAtOnce},
	{"tokens are divided among the askers", testSpendTokens}, {"a notice is given once in a window", testNotify},
	{"figures beyond all bounds are kept as far as they fit", testAbsurdFigures},
	{"what a message replies to is looked up", testQuoted},
	{"tool calls survive a crash and go with the commit", testToolRuns},
	{"every write is fenced by the term", testFencing},
	{"leases go stale and change hands", testTakeover},
	{"two replicas fight over a lease", testLeaseRace},
	{"releasing frees one session", testRelease},
	{"resigning frees everything at once", testResign},
	{"one replica leads", testLeader},
	{"a heartbeat returns the storage's clock", testClock},
	{"pending messages are listed, the newest first", testPending},
	{"the sweep finds what waits", testWaiting},
	{"the sweep finds orphans behind busy sessions", testWaitingOrphans},
	{"replicas wake each other", testListen},
	{"a reply is kept until it is settled", testOutbox},
	{"a notice is stored once, under the lease", testOutboxNotify},
	{"a claim takes open replies as they are", testOutboxClaim},
	{"a claim keeps the parts that arrived", testOutboxParts},
	{"a card is abandoned without a message and a reply", testCards},
	{"a reply settles its card", testCardsOfReplies}, {"the end of a card is prepaid through the commit", testPrepaidCards}, {"a reply leaves its card permanently", testLeftCards},
	{"a click is of a person who asked, or not", testClickedCards}, {"a reaction stays until its message is answered", testReactions},
	{"a reply left in a dead replica's hand is resumed", testOutboxResumed},
	{"a released reply has not arrived", testOutboxPutDown},
	{"a compaction moves the cursor once", testCompact},
	{"a compaction's notice is a reply", testNotice},
	{"summaries lie end to end", testCompactTiles},
	{"a turn that commits after a compaction adds to it", testCompactMidTurn},
	{"a turn that commits after any change of the view adds to it", testViewChangedMidTurn},
	{"a failed compaction is remembered", testCompactFailed},
	{"a backlog is listed until it rests", testBacklogs},
	{"a compaction begins a cycle in which flushes are tried again", testCompactForgivesFlushes},
	{"results are moved out of the view and read again", testOffload},
	{"results whose bodies are gone are read from the log", testBlobLogged},
	{"results that are gone are said to be so", testBlobFaults},
	{"bodies are kept as long as the view refers to them", testBlobsCounted},
	{"a refused attempt shows nothing otherwise", testShownRefused},
	{"a job has the events to summarize", testJob},
	{"what a job staged is found again", testJobStaged},
	{"the cost of a draft is charged once", testStagedCost},
	{"an edited event is not summarized in its old form", testJobEdited},
	{"of two workers the one with the lease compacts", testCompactRivals},
	{"of many compactions at once one commits", testCompactRace},
	{"an undo gives the former view back", testUndo},
	{"a message has an undo made once", testUndoOnce},
	{"an undo brings back what was rolled up", testUndoRollUp},
	{"a new generation begins with nothing", testRenew},
	{"leases of idle sessions are released", testRest},
	{"a session keeps its own settings", testConfigure},
	{"no summary has an erased event", testErase},
	{"an emptied summary is written again", testEraseRewrite},
	{"no view has an erased event", testEraseTail},
	{"no reply has an erased event", testEraseReplies},
	{"erasures end a few turns of a session, and wait for the next", testEraseWaits},
	{"erasures wait for a reply that is being sent", testEraseWaitsForReply},
	{"erasures end upkeep of a session a few times, and wait for the next", testEraseWaitsForUpkeep},
	{"a session is deleted with all it has", testDelete},
	{"a stored or deleted message is known under another id of its sender", testKnownUnderOtherID},
	{"whatever happens nothing is lost", testHistories},
}
