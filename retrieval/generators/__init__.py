"""Text generators behind one protocol, one file each."""
