// Package knowledge keeps files for a conversation: the documents that people ask to keep outlive their messages, and searches of memory
// find their pages. A file belongs to the session that kept it: to the group, to a member's part of it, or to a private chat.
//
// A kept file is a stranger's text. Searches show it as data, as they show the log.
package knowledge
