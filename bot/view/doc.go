// Package view decides what a request shows, measures it and assembles it. It asks no model.
package view
