"""What one more table would expose, and which repairs of it leave least. Start in `run`.

`rate_steps` asks the same of rates: how coarse they must be to add nothing.
"""

from unround.scenarios.rate_steps import RateSteps as RateSteps
from unround.scenarios.rate_steps import rate_steps as rate_steps
from unround.scenarios.repairs import exposure as exposure
from unround.scenarios.run import WhatIf as WhatIf
from unround.scenarios.run import whatif as whatif
