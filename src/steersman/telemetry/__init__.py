"""Logs, metrics and traces. Not built yet: this room holds no code.

What it will guarantee:

- Structured logs, counters and spans share one vocabulary: group, kind, namespace, name and the cause of the work.
- Without a configured exporter it costs next to nothing, and no exporter is imported.
- Metric names are those that Kubernetes controllers usually carry, so that existing dashboards read them.
- A secret never reaches a log line, a label or a span.
"""
