"""The one exception a user's mistake may raise; the command line prints it as a single line."""


class UserError(Exception):
    """Something the user can correct: says where, what was expected and what was found."""


class TooShortError(UserError):
    """A period of a log is shorter than one window."""
