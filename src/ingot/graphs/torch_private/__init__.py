"""What torch does not promise: private names, settings that matter, faults.

All of it is so in torch 2.11, 2.12, 2.13, 2.14 and 2.15, except where a line names versions: tests
in tests/graphs/test_torch_private.py fail once it is not. Importing this imports no compiler.
"""

from ingot.graphs.torch_private import dynamo, fakes, inductor, modules, tracing
from ingot.graphs.torch_private.dynamo import *  # noqa: F403 the names of __all__
from ingot.graphs.torch_private.fakes import *  # noqa: F403 the names of __all__
from ingot.graphs.torch_private.inductor import *  # noqa: F403 the names of __all__
from ingot.graphs.torch_private.modules import *  # noqa: F403 the names of __all__
from ingot.graphs.torch_private.tracing import *  # noqa: F403 the names of __all__

__all__: list[str] = []
__all__ += modules.__all__
__all__ += fakes.__all__
__all__ += tracing.__all__
__all__ += dynamo.__all__
__all__ += inductor.__all__
