// Package sdk has the sources of the SDKs for plugins, so that yaya can put the SDK of a
// language into the folder of a new plugin without fetching anything. Tests and packaging are
// left out.
package sdk
