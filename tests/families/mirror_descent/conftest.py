"""An embedded store, for what must hold on a real one as well."""

from tests.state.conftest import embedded_url  # noqa: F401  pytest finds fixtures by name
