// Package files reads the files of messages from the addresses that DingTalk's API returned for them, and has the forms of those that
// replies send.
//
// An address may lead anywhere: DingTalk serves files from bare public addresses too, so a list of hosts would refuse real ones. The
// address behind the name is checked at the moment of the connection. A private, loopback, link-local or otherwise special one is refused,
// unless the origin is that of the API itself. No redirect is followed. Size and time are bounded.
package files
