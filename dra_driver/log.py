"""Logging for both processes: constant event texts, data in keys; JSON unless somebody reads along on a terminal."""

import logging
import sys
from enum import StrEnum
from typing import Any

import structlog


class LogFormat(StrEnum):
    """How log lines look. `auto` is `text` on a terminal and `json` elsewhere."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least important lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logging(*, level: LogLevel = LogLevel.INFO, format_: LogFormat = LogFormat.AUTO) -> None:
    """Send log lines to standard error. Called once, by the composition root of a process."""
    terminal = sys.stderr.isatty()
    text = format_ is LogFormat.TEXT or (format_ is LogFormat.AUTO and terminal)
    renderers: tuple[Any, ...]
    if text:
        renderers = (structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=structlog.dev.plain_traceback),)
    else:
        # Without locals: they are long, and may hold what nobody should read.
        traceback = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        renderers = (structlog.processors.ExceptionRenderer(traceback), structlog.processors.JSONRenderer())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
