"""Torch layers for the tensors that numtok writes. This version of the package has none yet: the Arrow tensors are read with pyarrow or numpy."""
