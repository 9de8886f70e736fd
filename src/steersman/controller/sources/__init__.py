"""What fills the queue: events of watched kinds, predicates that drop them, and mappers to the objects to reconcile."""
