"""Flower's SecAgg+ (flwr 1.41) with its stages called in process: the benchmark's baseline, used nowhere else.

A party runs the functions that Flower's client mod calls. The coordinator runs `SecAggPlusWorkflow.unmask_stage` on a
grid with prepared replies, so that only the coordinator's work is timed.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.client.mod.secure_aggregation.secaggplus_mod import (
    SecAggPlusState,
    _collect_masked_vectors,
    _setup,
    _share_keys,
    _unmask,
)
from flwr.common import bytes_to_ndarray, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.ndarrays_arithmetic import parameters_addition, parameters_mod
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey
from flwr.server.workflow.secure_aggregation.secaggplus_workflow import SecAggPlusWorkflow, WorkflowState

from common.errors import InternalError
from server.flower.in_process import become_coordinator
from simulations.laboratory.benchmarks.timing import timed

_MODULUS = 2**32
_WEIGHT = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowerCost:
    """CPU time, in milliseconds, for the steps of a round.

    Attributes:
        mask: Time that the fastest party takes to mask its vector.
        combine: Time that the coordinator takes to unmask the sum.
    """

    mask: float
    combine: float


class FlowerParties:
    """Parties of Flower's SecAgg+ that have set up and shared their keys.

    Args:
        parties: Number of parties.
        shares: Number of holders of each party's shares, including that party; an odd number, or the number of all
            parties.
        threshold: Number of shares that recover a secret.

    Attributes:
        share_ms: CPU time, in milliseconds, that the fastest party takes to set up and share its keys.
    """

    def __init__(self, parties: int, shares: int, threshold: int) -> None:
        logging.getLogger("flwr").setLevel(logging.WARNING)
        become_coordinator()
        self._threshold = threshold
        half = shares // 2
        self._around = {node: {(node + step) % parties for step in range(-half, half + 1)} for node in range(parties)}
        self._states = {node: SecAggPlusState(nid=node) for node in range(parties)}
        numbers = {
            Key.SAMPLE_NUMBER: parties,
            Key.SHARE_NUMBER: shares,
            Key.THRESHOLD: threshold,
            Key.CLIPPING_RANGE: 8.0,
            Key.TARGET_RANGE: 2**22,
            Key.MOD_RANGE: _MODULUS,
            Key.MAX_WEIGHT: _WEIGHT,
        }
        advertised = {node: timed(_setup, state, _record(numbers)) for node, state in self._states.items()}
        self._publics = {
            node: [keys[Key.PUBLIC_KEY_1], keys[Key.PUBLIC_KEY_2]] for node, (keys, _) in advertised.items()
        }
        self._inboxes: dict[int, tuple[list[int], list[bytes]]] = {node: ([], []) for node in self._states}
        costs = []
        for node, state in self._states.items():
            publics = _record({str(peer): self._publics[peer] for peer in sorted(self._around[node])})
            sealed, cost = timed(_share_keys, state, publics)
            costs.append(cost + advertised[node][1])
            receivers, texts = cast("Any", sealed[Key.DESTINATION_LIST]), cast("Any", sealed[Key.CIPHERTEXT_LIST])
            for receiver, text in zip(receivers, texts, strict=True):
                self._inboxes[receiver][0].append(node)
                self._inboxes[receiver][1].append(text)
        self.share_ms = min(costs)

    def round(self, length: int, gone: int, *, sample: int | None = None) -> FlowerCost:
        """Run a round in which the last `gone` parties drop out before they send their vectors; return its cost.

        Args:
            length: Number of values in each vector.
            gone: Number of parties that drop out.
            sample: Number of survivors that mask a whole vector; each other survivor masks one value. With None, all
                survivors mask a whole vector, and the mean is checked.

        Raises:
            InternalError: The mean is wrong.
        """
        active = list(range(len(self._states) - gone))
        mean = np.zeros(length)
        total: list[Any] = []
        costs = []
        for node in active:
            whole = sample is None or node < sample
            vector = np.random.default_rng(node).uniform(-1, 1, length if whole else 1)
            mean += vector / len(active)
            sources, texts = self._inboxes[node]
            inbox = _record({Key.SOURCE_LIST: sources, Key.CIPHERTEXT_LIST: texts})
            parameters = ndarrays_to_parameters([vector])
            masked, cost = timed(_collect_masked_vectors, self._states[node], inbox, int(_WEIGHT), parameters)
            if whole:
                costs.append(cost)
                arrays = [bytes_to_ndarray(text) for text in cast("Any", masked[Key.MASKED_PARAMETERS])]
                total = parameters_addition(total, arrays) if total else arrays
        unmasked, combine = self._unmask(active, parameters_mod(total, _MODULUS))
        if sample is None and not np.allclose(unmasked, mean, atol=1e-5):
            raise InternalError("mean of Flower's parties", expected="their vectors' mean", got="another")
        return FlowerCost(mask=min(costs), combine=combine)

    def _unmask(self, active: list[int], total: list[Any]) -> tuple[Any, float]:
        """Return the unmasked mean of the vectors, and the CPU time, in milliseconds, to unmask it."""
        dead = set(self._states) - set(active)
        replies = []
        for node in active:
            request = {
                Key.ACTIVE_NODE_ID_LIST: sorted(self._around[node] & set(active)),
                Key.DEAD_NODE_ID_LIST: sorted(self._around[node] & dead),
            }
            content = RecordDict({RECORD_KEY_CONFIGS: _record(_unmask(self._states[node], _record(request)))})
            metadata = SimpleNamespace(src_node_id=node)
            replies.append(SimpleNamespace(content=content, metadata=metadata, has_error=lambda: False))
        outcome = SimpleNamespace(parameters=None)
        state = WorkflowState(
            sampled_node_ids=set(self._states),
            active_node_ids=set(active),
            threshold=self._threshold,
            clipping_range=8.0,
            quantization_range=2**22,
            mod_range=_MODULUS,
            nid_to_neighbours={node: set(around) for node, around in self._around.items()},
            nid_to_publickeys=cast("Any", self._publics),
            aggregate_ndarrays=total,
            legacy_results=[cast("Any", (None, outcome))],
        )
        grid = SimpleNamespace(send_and_receive=lambda messages, **_: _answer(messages, replies))
        context = SimpleNamespace(
            state=SimpleNamespace(config_records={MAIN_CONFIGS_RECORD: {WorkflowKey.CURRENT_ROUND: 1}}),
            strategy=SimpleNamespace(aggregate_fit=lambda *_: (None, {})),
        )
        # The workflow reads shares and threshold from the state.
        workflow = SecAggPlusWorkflow(1.0, 1.0)
        success, cost = timed(workflow.unmask_stage, cast("Any", grid), cast("Any", context), state)
        if not success:
            raise InternalError("Flower's unmasking", expected="to succeed", got="a failure")
        return parameters_to_ndarrays(cast("Any", outcome.parameters))[0], cost


def _answer(messages: Iterable[Message], replies: list[SimpleNamespace]) -> list[SimpleNamespace]:
    list(messages)
    return replies


def _record(values: dict[str, Any]) -> ConfigRecord:
    return ConfigRecord(values)
