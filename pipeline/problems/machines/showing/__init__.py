"""One jobset on many machines under two policies, side by side, as a picture."""
