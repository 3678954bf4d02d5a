#!/bin/sh
# Undo the order of jobs. Run it as root or as an operator of Slurm; it is safe to repeat.
set -e
echo off > @{folder}/job_order.mode   # from now on only the site's own rule applies to new and changed jobs
# Reset the site factors of all jobs: waiting ones, and running ones, which keep theirs if they are requeued.
squeue --noheader --all --format='update jobid=%A SiteFactor=0' | sort -u | scontrol
cat <<'END'
The order is off. To remove it for good:
1. In slurm.conf restore
@{before_lines}
2. Restore the site's own rule, if there was one:
   mv @{folder}/job_submit_site.lua @{folder}/job_submit.lua
3. Restart slurmctld, then: rm -f @{folder}/job_order.mode @{folder}/job_order_users.lua
END
