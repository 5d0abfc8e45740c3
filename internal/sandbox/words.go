package sandbox

import "github.com/yaya-ai/yaya/internal/lazyregexp"

// FileRefused is how programs say that the system has kept them from a file. Nobody but
// the program sees which file that was, or that the sandbox was the reason.
var FileRefused = lazyregexp.New(`(?i)\bEACCES\b|\bEPERM\b|\bEROFS\b|permission denied|operation not permitted|read-only file system|unable to create|device or resource busy`)
