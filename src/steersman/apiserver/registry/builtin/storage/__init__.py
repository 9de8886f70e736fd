"""Storage: volumes, their classes, drivers and attachments."""
