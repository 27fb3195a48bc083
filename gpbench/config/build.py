"""From a node of the configuration to the method that it describes."""

from collections.abc import Mapping
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from gpbench import registry
from gpbench.config.fields import check_fields, imported
from gpbench.errors import ConfigError, GpbenchError
from gpbench.methods.base import Method


def build_method(node: Mapping[str, Any]) -> Method:
    """The method with the class and the fields of a configuration's `method` section.

    Raises ConfigError for a field that does not fit, a class that cannot be imported or constructed or is not a
    `Method`, and a method without a name.
    """
    found, target = imported(node, "method"), node["_target_"]
    if isinstance(found, type) and not issubclass(found, Method):
        raise ConfigError(f"method: {target} must be a subclass of gpbench.methods.base.Method")
    node = {key: registry.named(key, value) for key, value in node.items()}
    check_fields(node)
    try:
        method = instantiate(dict(node))
    except InstantiationException as error:  # Hydra's wrapper of what the constructor raised
        if isinstance(cause := error.__cause__, GpbenchError):
            raise cause from None
        why = f"{type(cause).__name__}: {cause}" if cause else str(error)
        raise ConfigError(f"method: cannot construct {target}: {why}") from error
    if not isinstance(method, Method):
        raise ConfigError(f"method: {target} must be a subclass of gpbench.methods.base.Method")
    if not method.name:
        raise ConfigError("method has no name, by which records and tables know it: add `name: NAME` to its file")
    return method
