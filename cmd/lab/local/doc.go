// Package local runs PostgreSQL in a temporary folder, and bots in this process, for the commands of lab.
package local
