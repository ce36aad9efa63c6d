// Package reaction sets a robot's reaction on a waiting message as a thinking mark, until the message is answered.
//
// The first message of each turn gets the mark as soon as it is stored, before the turn has a slot: people see within
// a second that it arrived. The mark goes when the message no longer waits, whatever ended its turn.
//
// A row exists before the mark. Any replica claims it within seconds once its message no longer waits, also after a
// kill. So no mark is left, and none is set twice. The call of a process that stood still may come after the removal by another one. That
// process opens the row again once it goes on, and the mark is removed again.
//
// A mark takes two calls of the month, both reserved before the first is made. A second removal is a third one. No mark is set unless the month
// permits everything, see package calls. Failures are logged, and never reach a turn.
package reaction
