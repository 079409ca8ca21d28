"""What one more table would expose, and which repairs of it leave least. Start in `run`."""

from unround.whatif.exposure import exposure as exposure
from unround.whatif.run import WhatIf as WhatIf
from unround.whatif.run import whatif as whatif
