//go:build unix

// Command release makes the files of a release, in a folder: programs for every system in archives,
// packages for Linux, formulas and manifests for package managers, SBOMs and digests.
//
// The files depend on the commit, Go and nfpm alone, not on the time, the folder or the machine:
// two runs make the same bytes. Command release check installs the packages in empty roots and
// starts what they install, release again builds in another folder with an empty cache and
// compares, and release journey goes the way of somebody new, from the installer to a call of a tool.
package main
