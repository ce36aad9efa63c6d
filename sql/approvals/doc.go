// Package approvals keeps calls of tools that wait for a person's approval.
package approvals
