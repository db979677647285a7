"""The modules behind hone.nn."""
