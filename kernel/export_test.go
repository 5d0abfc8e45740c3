package kernel

// PictureType is pictureType for tests.
var PictureType = pictureType

// Planning is [Kernel.planning] for tests.
var Planning = (*Kernel).planning

// Attached is [Kernel.attached] for tests.
var Attached = (*Kernel).attached

// Free is [Kernel.free] for tests.
var Free = (*Kernel).free
