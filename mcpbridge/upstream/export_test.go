package upstream

// Exported for tests of this package alone.
var (
	Normalise = normalise
	ReadLines = readLines
)
