package kernel

// PictureType is pictureType for tests.
var PictureType = pictureType
