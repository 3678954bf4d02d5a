"""The decision service with the scheduler extender on a cluster, as tests of both schedulers call it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes_server import Cluster, api_server, until
from live_service import Service, service

from pipeline.core.config import Params
from pipeline.kubernetes.api import Address, Api
from pipeline.kubernetes.extender import Extender, router_of
from pipeline.kubernetes.view import View
from pipeline.serving.gateway import PolicyGateway
from pipeline.stages.serve import heuristic


@contextmanager
def extender_of(params: Params, cluster: Cluster) -> Iterator[Service]:
    """Serve `most_allocated` on a cluster that is known from the start."""
    with api_server(cluster) as url, View(Api(Address(url))) as view:
        until(lambda: view.synced)

        def more(gateway: PolicyGateway) -> list[Any]:
            return [router_of(Extender(view, gateway.answer))]

        with service(params, lambda: heuristic("most_allocated"), more=more) as one:
            yield one
