"""What a learned policy does differently from SJF, and a small tree that does nearly the same."""
