"""The suite that judges learners: worlds, rivals and a ceiling, on the same arrivals.

May import the rest of `research`, `decisions`, `families` and `state`. Read `stretches`, `worlds`,
`ceiling`, `served`, `trials`, `report`, in this order.
"""
