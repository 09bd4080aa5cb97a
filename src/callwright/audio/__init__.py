"""Signal code on numbers: formats, G.711, resampling, mixing, levels. Pure."""
