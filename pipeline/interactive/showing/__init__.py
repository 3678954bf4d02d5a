"""One jobset under several policies, side by side, as a picture; a problem supplies the rows of the picture."""
