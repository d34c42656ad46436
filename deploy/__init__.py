"""How Discreet is deployed and watched. Nothing in here is part of the package."""
