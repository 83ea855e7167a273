"""What may be done with hits once they are found: score them anew, diversify them, widen them."""
