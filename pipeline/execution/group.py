"""A command in a process group that ends with the process that began it, however that ends."""

# The command's own first process, and beside it one that waits: a pipe that nobody writes to is closed when who began
# it is gone, killed or not, and then the group is told to end, and made to. What it begins stays in its group.
# POSIX sh, as ["/bin/sh", "-c", GROUP, NAME, *words] in a session of its own, its standard input that pipe.
GROUP = """
exec 3<&0 </dev/null
{ trap '' TERM; read gone <&3; kill -TERM 0; sleep 5; kill -KILL 0; } >/dev/null 2>&1 &
exec "$@" 3<&-
"""

KILLED = 128 + 9  # exit code of what was killed
