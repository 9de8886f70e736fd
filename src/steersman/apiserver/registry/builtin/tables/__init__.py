"""Tables: the columns and cells of built-in kinds, as ``kubectl get`` shows them."""
