-- job_submit.lua: order waiting jobs by @{formula}.
-- slurmctld runs it at each submission and change of a job. It sets the site factor, and never the priority.
-- Checked with Slurm 22.05.8; the setter of site_factor adds NICE_OFFSET itself. In Slurm's source up to 26.05.3 it is
-- the same. New there: since 26.05 an error in this file rejects the job, so errors are caught and logged here.
-- A site's own job_submit.lua becomes SITE_RULE, which is called first. After changing it: touch job_submit.lua.
-- MODE_FILE has one word. observe: log only; advise: log, and tell the user; enforce: set the site factor; off, any
-- other word, or no file: only the site's rule applies. Write off rather than remove it: a failed open leaves an errno,
-- which slurmctld takes for its own when a job without an association changes its partition.
local MODE_FILE = "@{folder}/job_order.mode"
local SITE_RULE, USERS_FILE = "@{folder}/job_submit_site.lua", "@{folder}/job_order_users.lua"
local ONLY = {}  -- partitions to order; empty: all
local SCALE, TOP, TAU = @{scale}, @{top}, @{tau}  -- points per unit of the score, the highest score, s per unit
local LIMIT, CPUS, PAST = @{weights}
local OFFSETS = {@{offsets}}
local DEFAULT_PAST = @{past_s}  -- s, for users without an entry in USERS_FILE
local SHORTEST, LONGEST, WAITING = 60, 31536000, 0  -- s, s, state of a job

local function read_mode()
  local file = io.open(MODE_FILE)
  if not file then return "off" end
  local word = string.match(file:read("*a") or "", "%a+")
  file:close()
  return (word == "observe" or word == "advise" or word == "enforce") and word or "off"
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local site, USERS = {}, {}
if exists(SITE_RULE) then
  local result = assert(loadfile(SITE_RULE))()
  site.submit, site.modify = slurm_job_submit, slurm_job_modify
  if result ~= nil and result ~= slurm.SUCCESS then return result end
end
if PAST ~= 0 and exists(USERS_FILE) then
  local read, found = pcall(dofile, USERS_FILE)
  if read and type(found) == "table" then USERS = found else slurm.log_error("job order: %s", tostring(found)) end
end

local function known(value) return value ~= nil and value ~= slurm.NO_VAL end
local function within(value, low, high) return math.min(math.max(value, low), high) end

local function limit_s(minutes, part)
  if not known(minutes) and part then minutes = part.default_time end
  if not known(minutes) and part then minutes = part.max_time end
  if not known(minutes) or minutes == slurm.INFINITE then return LONGEST end
  return within(60 * minutes, SHORTEST, LONGEST)
end

local function names_of(partition, part_list)
  local found = {}
  for name in string.gmatch(partition or "", "[^,]+") do found[#found + 1] = name end
  if #found == 0 then
    for name, part in pairs(part_list) do
      if part.flag_default == 1 then found[1] = name end
    end
  end
  return found
end

-- Of a job in several partitions, the highest score counts: naming one more partition moves no job forward.
local function factor_of(job, part_list)
  local past, highest = within(USERS[job.user] or DEFAULT_PAST, SHORTEST, LONGEST), nil
  for _, name in ipairs(job.partitions) do
    local score = LIMIT * math.log(limit_s(job.minutes, part_list[name])) + CPUS * math.log(job.cpus)
      + PAST * math.log(past) + (OFFSETS[name] or 0)
    if highest == nil or score > highest then highest = score end
  end
  return math.max(1, math.floor(SCALE * (TOP - highest) + 0.5))
end

local function ordered(partitions)
  for _, name in ipairs(partitions) do
    if next(ONLY) ~= nil and not ONLY[name] then return false end
  end
  return #partitions > 0
end

local function set_factor(mode, desc, job, part_list, say)
  if not ordered(job.partitions) then return end
  local factor = factor_of(job, part_list)
  slurm.log_info("job order (%s): user=%s partition=%s minutes=%.0f cpus=%.0f site_factor=%.0f", mode,
    tostring(job.user), table.concat(job.partitions, ","), job.minutes or slurm.NO_VAL, job.cpus, factor)
  if mode == "enforce" then
    desc.site_factor = factor
  elseif mode == "advise" and say and LIMIT > 0 then
    slurm.log_user("Planned order of jobs: half the time limit would count as much as %.1f hours of waiting.",
      LIMIT * math.log(2) * TAU / 3600)
  end
end

local function count_cpus(cpus, nodes)
  return math.max(1, known(cpus) and cpus or 1, known(nodes) and nodes or 1)
end

local function order_submitted(desc, part_list)
  local mode = read_mode()
  if mode == "off" or known(desc.site_factor) then return end  -- the site's rule has set one
  set_factor(mode, desc, {minutes = desc.time_limit, cpus = count_cpus(desc.min_cpus, desc.min_nodes),
    user = desc.user_name, partitions = names_of(desc.partition, part_list)}, part_list, true)
end

-- Jobs submitted before this file was installed have no factor yet and get theirs at any change.
local function order_modified(desc, rec, part_list)
  local mode = read_mode()
  if mode == "off" or known(desc.site_factor) or rec.job_state % 256 ~= WAITING then return end
  if not (known(desc.time_limit) or known(desc.min_cpus) or known(desc.min_nodes) or desc.partition)
    and rec.site_factor ~= 0 then return end
  local function new(name) return known(desc[name]) and desc[name] or rec[name] end
  set_factor(mode, desc, {minutes = new("time_limit"), cpus = count_cpus(new("min_cpus"), new("min_nodes")),
    user = desc.user_name or rec.user_name, partitions = names_of(desc.partition or rec.partition, part_list)},
    part_list, false)
end

local function guarded(result, change, ...)
  if result == nil or result == slurm.SUCCESS then
    local done, problem = pcall(change, ...)
    if not done then slurm.log_error("job order: %s", tostring(problem)) end
  end
  return result or slurm.SUCCESS
end

function slurm_job_submit(desc, part_list, uid)
  return guarded(site.submit and site.submit(desc, part_list, uid), order_submitted, desc, part_list)
end

function slurm_job_modify(desc, rec, part_list, uid)
  return guarded(site.modify and site.modify(desc, rec, part_list, uid), order_modified, desc, rec, part_list)
end

return slurm.SUCCESS
