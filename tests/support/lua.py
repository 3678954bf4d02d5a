"""Lua in this process, through the C library that Slurm's own plugin uses (Debian: a dependency of slurmctld)."""

import ctypes
from ctypes.util import find_library

LIBRARIES = [name for name in ("lua5.1", "lua5.3", "lua5.4") if find_library(name)]
NONE = "no liblua5.1 (Debian: apt-get install liblua5.1-0)"
# What slurmctld provides to job_submit.lua; messages are collected.
SLURM = """
said = {}
local function say(...) said[#said + 1] = string.format(...) end
slurm = {NO_VAL = 4294967294, INFINITE = 4294967295, SUCCESS = 0, ERROR = -1,
  log_info = say, log_error = function(...) say("error: " .. string.format(...)) end,
  log_user = function(...) say("user: " .. string.format(...)) end}
function job(fields)  -- as Slurm describes a new job that asks for nothing
  local found = {min_cpus = 1, min_nodes = slurm.NO_VAL, time_limit = slurm.NO_VAL, site_factor = slurm.NO_VAL}
  for name, value in pairs(fields) do found[name] = value end
  return found
end
function change(fields)  -- as Slurm describes a change of a job
  local found = {min_cpus = slurm.NO_VAL, min_nodes = slurm.NO_VAL, time_limit = slurm.NO_VAL,
    site_factor = slurm.NO_VAL}
  for name, value in pairs(fields) do found[name] = value end
  return found
end
"""


def run_lua(code: str, library: str = "lua5.1") -> str:
    """Return the result of a chunk as text; an error in Lua is an AssertionError."""
    lua = ctypes.CDLL(find_library(library))
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    try:
        lua.luaL_openlibs(state)
        failed = lua.luaL_loadstring(state, code.encode())
        if not failed and hasattr(lua, "lua_pcallk"):  # since 5.2
            failed = lua.lua_pcallk(state, 0, 1, 0, ctypes.c_ssize_t(0), None)
        elif not failed:
            failed = lua.lua_pcall(state, 0, 1, 0)
        text = lua.lua_tolstring(state, -1, None)
        assert not failed, text
        return "" if text is None else str(text.decode())
    finally:
        lua.lua_close(state)
