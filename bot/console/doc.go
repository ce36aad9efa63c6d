// Package console serves the pages and the API for administrators: what conversations hold, what was compacted and why, what
// was saved, and the way to take it back.
//
//	console.go    Config, New, the routes
//	entry.go      who gets in: tokens, logins, the two roles
//	throttle.go   a bound on wrong tokens per address
//	masked.go     what a viewer sees of private chats
//	work.go       the running work of a session, which refreshes itself
//	filter.go     the text filter of lists, as in "group:支付 state:busy"
//	render.go     templates, languages, formats of figures
//	pages         overview_page.go, sessions_page.go, compactions_page.go, memories_page.go, usage_page.go, privacy_page.go,
//	              operation_pages.go
//	chart.go      the tokens of a session over time
//	api.go        /api/v1, described by openapi.yaml; api_rows.go has its rows
//
// Pages are complete without script; htmx only refreshes a part of the overview. Nothing is loaded from another origin.
package console
