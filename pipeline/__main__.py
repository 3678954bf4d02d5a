"""`python -m pipeline`."""

import sys

sys.modules["hypothesis"] = None  # type: ignore[assignment]  # pandera would import it where tests are run; no command does

try:
    from pipeline.cli import main
except ModuleNotFoundError as error:
    if (error.name or "").startswith("pipeline"):
        raise
    sys.stderr.write(f"error: package '{error.name}' is not there: 'make setup', then 'source .venv/bin/activate'\n")
    sys.exit(2)

if __name__ == "__main__":
    main()
