"""What the versions of a kind share: what a change of its definition would remove or break, and objects without some parts. Pure."""
