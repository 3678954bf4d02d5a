"""Where a network computes: `device` of params.yaml. Simulation stays on the CPU.

On a CUDA device networks take drawn images and dense layers by torch's own operations, of which not all give the same
bits twice: results there are exempt from the promise of the same bytes.
"""

import torch

from pipeline.errors import UserError


def device_of(wanted: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` means here.

    Raises:
        UserError: `cuda` was asked for and there is none.
    """
    there_is = torch.cuda.is_available()
    if wanted == "cuda" and not there_is:
        raise UserError("params.yaml: device: 'cuda' asked for, but PyTorch finds no CUDA device; use auto or cpu")
    return torch.device("cuda" if there_is and wanted != "cpu" else "cpu")
