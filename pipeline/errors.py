"""The one exception a user's mistake may raise; the command line prints it as a single line."""


class UserError(Exception):
    """Something the user can mend: says where, what was expected and what was found."""
