#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Sharpen photos on a cluster with Slurm and Apptainer: each task of the array does one part, and asks for its own
# repetition if it ends with 75. Submit it in the folder that holds photos/:
#
#     podman save --format docker-archive -o gpuconv.tar gpuconv     # the image of packaging/Containerfile
#     apptainer build gpuconv.sif docker-archive:gpuconv.tar
#     sbatch slurm.sh
#
# Without GPUs, leave out --gpus and --nv.
#SBATCH --job-name=gpuconv --array=0-7 --requeue
#SBATCH --gpus=1 --cpus-per-task=4 --mem=8G
apptainer exec --nv --bind "$PWD" --pwd "$PWD" gpuconv.sif \
    gpuconv --shard auto -r sharpen photos -o sharp --skip-existing --report sharp.jsonl
status=$?
[ $status -ne 75 ] || scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
exit $status
