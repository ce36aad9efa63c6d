// Package config is the configuration file: schema, defaults, strict loading with the place of each mistake, checks,
// and the redacted form that is printed. The reference is config.jsonc at the root of the module.
package config
