// Package schedules keeps messages at set times, and stores each of them at its time.
package schedules
