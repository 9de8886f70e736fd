"""Reads files into an `Application`: finds and merges them, and interprets each key."""

from steersman.application.source.discovery import find_files as find_files
from steersman.application.source.loader import is_edited as is_edited, load_application as load_application
from steersman.application.source.selection import select_services as select_services
