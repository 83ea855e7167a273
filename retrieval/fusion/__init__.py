"""Rules that merge a dense and a lexical ranking, one file each."""
