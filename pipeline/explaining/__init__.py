"""What a policy does differently from the rule that everybody knows; the same for every problem."""
