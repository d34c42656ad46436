"""What the hub says no to, in words for the person in front of it.

DiscreetError
├── Refused              the hub will not do this now; `words` say why and what to do
└── ServerTrouble        the recommendation server did not do its part; nothing was lost here
"""

from discreet.errors import DiscreetError


class Refused(DiscreetError):
    """The hub will not do this now. The message is shown as it is."""


class ServerTrouble(DiscreetError):
    """The recommendation server did not answer, or answered something that cannot be used."""
