"""The labels and annotations that tie objects to their application."""

#: Label: the name of the project. Every object of the application has it.
PROJECT = "steersman.dev/project"
#: Label: the name of the service as the file declares it, on its objects and on the Executables of its set.
SERVICE = "steersman.dev/service"
#: Annotation of a Service: "true" if views show no address, because its processes need not listen.
NO_ADDRESS = "steersman.dev/no-address"
#: Annotation: the position of the service in its file: "0", "1", ...
ORDER = "steersman.dev/order"
#: Annotation: what the service depends on, as a JSON list of ``{"service": ..., "condition": ...}``.
DEPENDS_ON = "steersman.dev/depends-on"
