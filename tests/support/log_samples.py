"""The smallest log of each format: one job."""

TASK = "M1,1,j_1,1,Terminated,100,110,100,0.5"
HEADER = ",submit_time,duration,cpu,memory,job_id,task_id,instances_num,disk"
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
SAMPLES = {
    "swf": "; MaxProcs: 8\n1 0 5 10 2 -1 -1 2 20 -1 1 3 -1 -1 -1 -1 -1 -1\n",
    "openb": f"{OPENB}\npod,1000,1024,1,500,,LS,Running,10,30,20\n",
    "alibaba2018": f"{TASK}\n",
    "alibaba2017": "100,110,1,2,3,Terminated,50,0.02\n",
    "cloudsimpy": f"{HEADER}\n0,5,10,0.5,0.02,1,1,3,0\n",
    "slurm": "submit,wait,run,limit,user,nodes,cpu,memory,gpu,partition\n100,5,10,60,7,1,2,4,0,cpu\n",
    "google2011": "".join(
        f"{600000000 + k},,7,0,,{event},bob,2,9,0.5,0.25,0.1,0\n" for k, event in enumerate((0, 1, 4))
    ),
}
