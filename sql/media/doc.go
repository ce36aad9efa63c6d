// Package media keeps the pictures and the texts of files that people send, and the files that replies send. The rows of a message's attachments belong to its log: an
// erasure and retention delete what no message of the session has any more.
package media
