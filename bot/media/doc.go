// Package media makes of the attachments of messages what a request shows: pictures, and the texts of documents.
//
// [Reader.Fetch] runs in the turn, before the model is asked. Each attachment is downloaded to a file without a name, and parsed in a
// child process. It is stored under the lease of the session, with its content, or with the reason why it has none. A process that dies between
// two of these steps leaves nothing behind, and the next attempt at the turn repeats them. [Reader.Show] reads the stored ones for the
// messages of a view.
//
// The bytes are a stranger's, and so are the texts: requests show them between fences, as data.
package media
