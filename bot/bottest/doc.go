// Package bottest is the world of the tests of bot and of the packages below it. A World is a whole bot over the in-memory store.
// A test scripts its transport, its model and its tools, and time is virtual. Start begins one in a synctest bubble.
//
// A test belongs to the package whose promise it states, in a package named X_test there. It plays in a World where that promise
// shows in messages, replies, requests and rows. A test of one function needs no World.
package bottest
