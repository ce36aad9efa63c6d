// Package schedule sets reminders and stores their messages at their times. [Planner] serves the command and the tool. [Runner] is
// the leader's background work: it stores the message of each time as if its creator had sent it, and a turn answers it.
package schedule
