"""The hospital's metrics for its own Prometheus: http://127.0.0.1:PORT/metrics.

    python -m client.deploy.metrics FOLDER

If `metrics_port` is set, `caucus-party start` runs this program beside the party service, under the same account; the
service itself has no network. The program reads the ledger, the note of its head and the audit log, writes nothing, and
binds no address other than 127.0.0.1. The figures are only for the hospital, but any user of this machine can read
them. They comprise the budget, reasons for refusals, and times, but no text and no figure that depends on a record.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from client.deploy.settings import HospitalSettings
from client.deploy.status import hospital_status
from common.errors import CaucusError, ConfigError
from common.messages import Reason
from common.system.log_lines import LOG_FORMAT

HOST = "127.0.0.1"
LONGEST_WAIT = 10.0
"""Seconds for which a connection may stay silent, limited since connections are handled one after another."""

log = logging.getLogger("caucus.metrics")

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class HospitalMetrics(Collector):
    """The status of the hospital with this folder as metrics, read from the files again at each request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics whose values are known."""
        settings = HospitalSettings.load(self._folder)
        status = hospital_status(settings)
        requests, spending, limits = status.requests, status.spending, settings.party.limits
        if requests.last_contact:
            seconds = datetime.fromisoformat(requests.last_contact).timestamp()
            yield _gauge("last_contact_timestamp_seconds", "Time of the coordinator's last request.", seconds)
        if status.certificate_days is not None:
            text = "Days until the certificate of the coordinator's authority ends."
            yield _gauge("certificate_days", text, status.certificate_days)
        if limits.lifetime_epsilon is not None:
            yield _gauge("epsilon_limit", "Largest epsilon of all runs together.", limits.lifetime_epsilon)
        if spending.left is not None:
            yield _gauge("epsilon_left", "Rest of the largest epsilon of all runs.", spending.left)
        yield _gauge("epsilon_spent", "Epsilon of all answers together.", spending.epsilon)
        yield _gauge("ledger_accepted", "1 if the service starts over this ledger, else 0.", not spending.problem)
        yield _counter("ledger_events", "Events in the ledger.", spending.events)
        yield _counter("requests_answered", "Answered requests in the audit log.", requests.answered)
        refused = CounterMetricFamily(
            "caucus_requests_refused", "Refused requests in the audit log, by reason.", labels=["reason"]
        )
        for reason, number in sorted({**requests.refused, Reason.AWAITING.name: requests.waiting}.items()):
            refused.add_metric([reason], number)
        yield refused
        yield _gauge("audit_log_used_ratio", "Used share of the audit log's largest size.", status.audit_used)
        yield _gauge("plans_awaiting_approval", "Plans that wait for a person's decision.", status.awaiting)
        running = GaugeMetricFamily("caucus_process_running", "1 if the process runs, else 0.", labels=["process"])
        for name, child in sorted(status.processes.items()):
            running.add_metric([name], child["process"] is not None)
        yield running


def server(folder: Path, port: int) -> WSGIServer:
    """Return a server of these metrics on loopback, for `serve_forever`; raise an OSError if the port is in use."""
    registry = CollectorRegistry()
    registry.register(HospitalMetrics(folder))
    app = _metrics_alone(make_wsgi_app(registry))
    return make_server(HOST, port, app, handler_class=_Quiet)


def _metrics_alone(app: Wsgi) -> Wsgi:
    """Return `app` restricted to one path and to this machine's own names, so that no web page can read it."""

    def answer(request: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        host = request.get("HTTP_HOST", HOST).split(":")[0]
        if request["PATH_INFO"] != "/metrics" or host not in {HOST, "localhost"}:
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"the metrics are at /metrics\n"]
        try:
            return app(request, start)
        except (CaucusError, OSError) as error:
            log.warning("%s", error)
            start("503 Service Unavailable", [("Content-Type", "text/plain")])
            return [b"see logs/metrics.log\n"]

    return answer


class _Quiet(WSGIRequestHandler):
    timeout = LONGEST_WAIT

    def log_message(self, *_: Any) -> None:
        """Do not log requests."""


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"caucus_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"caucus_{name}", text, value=value)


def main() -> int:
    """Serve until a signal to stop is received."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    try:
        settings = HospitalSettings.load(Path(sys.argv[1]))
        if settings.metrics_port is None:
            raise ConfigError("metrics_port", expected="a port", got="none", where=settings.folder / "client.yaml")
        metrics = server(settings.folder, settings.metrics_port)
    except (CaucusError, OSError) as error:
        log.error("%s", error)  # noqa: TRY400 the line is for an operator
        return 1
    os.chdir(settings.folder)
    log.info("metrics at http://%s:%d/metrics", HOST, settings.metrics_port)
    metrics.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
