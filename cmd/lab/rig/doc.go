// Package rig is shared by the commands of lab: the command line, gateways as child processes and their logs, askers,
// configs, and tables of figures.
package rig
