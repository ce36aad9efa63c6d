// Package sendfile makes the files that replies send. A tool, a command or a long table brings a name and bytes. The [Tray] of its turn
// types them by the bytes, and gives them a name that is safe for people's devices. It bounds their size and number, asks whether the month's
// calls permit a file, and stores them under the lease.
package sendfile
