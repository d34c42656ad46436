"""What the hub cannot do, said to the person in front of it.

DiscreetError
├── HubRefusal           the hub will not do this now; the message says why and what to do
└── ServerError          the recommendation server did not do its part; nothing was lost here
"""

from discreet.errors import DiscreetError


class HubRefusal(DiscreetError):
    """The hub will not do this now. The message is shown as it is."""


class ServerError(DiscreetError):
    """The recommendation server did not answer, or answered something that cannot be used."""
