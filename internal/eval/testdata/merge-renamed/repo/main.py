from util import total
