import sys

from app.sorting import by_length
from app.output import show

show(by_length(sys.argv[1:]))
