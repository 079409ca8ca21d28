"""What one more table would expose, and which repairs of it leave least. Start in `run`."""

from unround.scenarios.repairs import exposure as exposure
from unround.scenarios.run import WhatIf as WhatIf
from unround.scenarios.run import whatif as whatif
