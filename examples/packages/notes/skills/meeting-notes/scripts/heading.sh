#!/bin/sh
printf '# %s\n\n## Decisions\n' "$1"
