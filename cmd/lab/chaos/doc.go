// Package chaos kills, stops and cuts off gateways while people talk, and then checks that nothing was lost, doubled or left
// unerased: `lab chaos`. World and faults come first, then the evidence, which is plain data, and the checks on it.
package chaos
