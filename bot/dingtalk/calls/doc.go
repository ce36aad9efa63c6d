// Package calls governs the counted calls to DingTalk's open API: their rate, and their number in a month.
//
// # Rate
//
// DingTalk allows an application 20 calls of each API in a second, which the running replicas share equally.
// [Governor.Wait] admits callers in the order of asking. After a refusal for the rate all callers of that API pause; DingTalk does not count such a call.
//
// # Month
//
// An organization has a number of calls in a month, all APIs together. The database counts calls before they are made:
// all replicas agree, and a killed process forgets none. The month is that of
// Asia/Shanghai, as at DingTalk, by the database's clock.
//
//	level        remaining calls                 permitted
//	Streaming    more than a quarter             everything
//	Unstreamed   the last quarter                cards of two calls: one that opens it, one that fills and ends it
//	Webhook      the last 5 %, at least 5 calls  ends of open cards, sends past an expired webhook
//	Spent        none                            nothing
//
// Session webhooks and access tokens are not counted, so the bot answers at every level.
//
// # Decisions
//
// The bounds are fixed shares of the month. A pace would switch between levels from day to day. Each step is reported
// once, and an answer of the last day still has its share.
//
// The level is computed from the count and the quota of this process, and stored nowhere. A raised quota holds from the
// restart of each replica on. Returned calls count as never made.
// After a refusal of DingTalk itself the level is Spent for a while only, or until an operator resumes calls. The next
// call shows whether the organization bought more.
package calls
