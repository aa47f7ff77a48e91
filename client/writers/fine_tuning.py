"""DP-SGD at a party: fine-tunes a causal language model on its records, and draws texts from it (Abadi et al. 2016).

The statement and its proof are in `common.queries.texts.FineTunedSpec`; this module performs the steps of the proof:

1. draw    a Poisson subsample of the units, with a fresh secret key
2. clip    each record's gradient, at norm C
3. round   it to integers, scaled so that C is 0.99 B, at random and without bias; drop it if its norm exceeds B
4. sum     exactly
5. noise   a discrete Gaussian draw for each weight, from the operating system's entropy, for an empty subsample too
6. divide  by a public number, never by the size of the subsample
7. update  the weights, by Adam

Steps, rates and lengths are public. Nothing else depends on the records: no schedule, no early stop, no stored loss.
"""

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from client.records import EmbeddedRecords
from client.writers.base import OR_REFUSE, spec_of
from client.writers.causal_model import Causal, TokenisedRecord, load_causal_model, own_randomness
from common.errors import ConfigError
from common.models.encoder import Encoder
from common.plan.planned import PlannedQuery
from common.privacy.samplers import discrete_gaussian
from common.queries.text_codec import Labelled
from common.queries.texts import MOST_TRAINABLE, FineTunedSpec
from common.rng import secure_bytes
from common.validate import integers

if TYPE_CHECKING:
    from torch import Tensor

ROOM = 0.99
"""The clipping norm as a fraction of B; the rest allows for the growth of a norm by random rounding."""
_LARGEST_SHARE = 0.07
"""Maximum number of trainable weights, as a fraction of B^2. Rounding d numbers at random adds at most d / 4, on
average, to a squared norm of B^2, with a standard deviation of B: 0.99^2 + 0.07 / 4 + 6 / B is below 1 for B >= 4096.
"""
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuningWriter:
    """The `PartyWriter` that fine-tunes a language model, with settings from the party's own file.

    Attributes:
        name_or_path: A transformers checkpoint: a folder, or a name in the local cache. None creates a small model with
            random weights, which learns little.
        device: Device to compute on, as torch names it.
        micro_batch: Number of records computed together. With 1, each record's gradient is independent of all other
            records to the last bit; more may be faster, but records of one micro-batch may change each other's
            gradients by a rounding error.
        max_steps: Maximum number of training steps that a plan may request.
    """

    name_or_path: str | None = None
    device: str = "cpu"
    micro_batch: int = 1
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        integers(1, micro_batch=self.micro_batch, max_steps=self.max_steps)

    def check(self, planned: PlannedQuery, labels: Sequence[str]) -> None:
        """Load the model and select the weights to train.

        Raises:
            ConfigError: There is no such model, or it cannot do what the plan requires.
        """
        spec = spec_of(planned, FineTunedSpec)
        if spec.steps > self.max_steps:
            expected = f"at least {spec.steps}, for this plan"
            raise ConfigError("fine_tuning.max_steps", expected=expected, got=self.max_steps, do=OR_REFUSE)
        self._tuner(spec, labels)

    def write(
        self, planned: PlannedQuery, records: EmbeddedRecords, *, labels: Sequence[str], encoder: Encoder, key: bytes
    ) -> list[Labelled]:
        """Return texts drawn from the model after DP-SGD, with balanced labels; fewer if some texts are blank."""
        del encoder, key  # Each step draws separate keys, also from the operating system.
        spec = spec_of(planned, FineTunedSpec)
        tuned = train(self._tuner(spec, labels), spec, records, rate=planned.rate, scale=planned.scale)
        per_label, extra = divmod(spec.texts, len(labels))
        return [
            (label, text)
            for label in range(len(labels))
            for text in tuned.write(label, per_label + (label < extra), temperature=spec.temperature, top_p=spec.top_p)
        ]

    def _tuner(self, spec: FineTunedSpec, labels: Sequence[str]) -> "Tuner":
        causal = load_causal_model(self.name_or_path, labels, max_tokens=spec.max_tokens, device=self.device)
        return Tuner(causal, lora=spec.lora, resolution=spec.resolution, micro_batch=self.micro_batch)


class Tuner:
    """A model to train by DP-SGD, which computes the gradient for each single record.

    Args:
        causal: The model; its weights are changed.
        lora: Rank of the adapters that are trained in place of the model's weights; 0 trains the weights.
        resolution: B, the number of integer units in C / 0.99.
        micro_batch: Number of records computed together; 1 uses torch's own gradients, more use opacus' per-record
                gradients.

    Raises:
        ConfigError: There are too many weights for B, or per-record gradients are not available for the model's layers.
    """

    def __init__(self, causal: Causal, *, lora: int, resolution: int, micro_batch: int) -> None:
        import torch

        self.causal = causal
        with _quiet():
            self._model = _adapted(causal.model, lora) if lora else causal.model
        self._model.train()
        self.weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        self.size = sum(weight.numel() for weight in self.weights)
        self._check_size(resolution)
        self._resolution = resolution
        self._coins = torch.Generator(self._device).manual_seed(int.from_bytes(secure_bytes(7)))
        self._micro_batch = micro_batch
        if micro_batch > 1:
            self._hooks = self._hooked()

    @property
    def _device(self) -> Any:
        return self.causal.model.device

    def gradients(self, records: Sequence[TokenisedRecord]) -> "Tensor":
        """Return each record's gradient of its mean loss over the tokens after the label, (records, size) float32."""
        import torch

        if self._micro_batch == 1:
            return torch.stack([self._alone(record) for record in records])
        with _quiet():
            self._losses(records).sum().backward()  # type: ignore[no-untyped-call]
        rows = torch.cat([weight.grad_sample.flatten(1) for weight in self.weights], dim=1)
        for weight in self.weights:
            weight.grad = weight.grad_sample = None
        return rows

    def clipped_sum(self, records: Sequence[TokenisedRecord], *, clip: float) -> "Tensor":
        """Return the sum of the records' gradients after steps 2 and 3, as whole numbers, (size,) float64."""
        import torch

        total = torch.zeros(self.size, dtype=torch.float64, device=self._device)
        for start in range(0, len(records), self._micro_batch):
            rows = self.gradients(records[start : start + self._micro_batch])
            total += self.rounded(rows, clip=clip).sum(dim=0, dtype=torch.float64)
        return total

    def rounded(self, rows: "Tensor", *, clip: float) -> "Tensor":
        """Clip each row at norm C = `clip`, scale it by 0.99 B / C, and round it to whole numbers of norm B at most.

        The bound holds for any row, since a row that is not finite, or whose norm exceeds B after rounding, is dropped.
        """
        import torch

        norms = _norms(rows)
        scaled = rows * (ROOM * self._resolution / norms.clamp(min=clip))[:, None].to(rows.dtype)
        coins = torch.rand(scaled.shape, generator=self._coins, device=self._device)
        whole = torch.floor(scaled + coins)
        # Squares of whole numbers up to 2^20, summed in float64 below 2^53: exact. Not-a-number fails the comparison.
        whole[~((whole.double() ** 2).sum(dim=1) <= self._resolution**2)] = 0
        return whole

    def update(self, gradient: "Tensor", optimizer: Any) -> None:
        """Take one step of the optimizer with this (size,) gradient."""
        import torch

        parts = torch.split(gradient, [weight.numel() for weight in self.weights])
        for weight, part in zip(self.weights, parts, strict=True):
            weight.grad = part.view_as(weight).to(weight.dtype)
        optimizer.step()
        optimizer.zero_grad()

    def tuned(self) -> Causal:
        """Return the model without the components that only training needs."""
        if self._micro_batch > 1:
            self._hooks.remove_hooks()
        model = self._model
        if model is not self.causal.model:
            model = model.merge_and_unload()
        return replace(self.causal, model=model)

    def _losses(self, records: Sequence[TokenisedRecord]) -> "Tensor":
        """Return the mean negative log likelihood, in nats, of each record's tokens after its label, (records,)."""
        import torch

        longest = max(len(record.ids) for record in records)
        end = self.causal.tokenizer.eos_token_id
        ids = torch.tensor([[*record.ids, *[end] * (longest - len(record.ids))] for record in records])
        place = torch.arange(longest).expand(ids.shape)
        lengths, prefixes = torch.tensor([[len(record.ids), record.prefix] for record in records]).T.unsqueeze(2)
        # Padding follows a record: causal attention never sees it, and its own loss does not count.
        shown = (place < lengths).long()
        counted = ((place >= prefixes) & (place < lengths))[:, 1:].to(self._device)
        ids = ids.to(self._device)
        logits = self._model(
            input_ids=ids,
            attention_mask=shown.to(self._device),
            position_ids=place.to(self._device),
            use_cache=False,
        ).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        means: Tensor = (losses * counted).sum(dim=1) / counted.sum(dim=1)
        return means

    def _check_size(self, resolution: int) -> None:
        most = min(MOST_TRAINABLE, math.floor(_LARGEST_SHARE * resolution**2))
        if self.size > most:
            raise ConfigError(
                "weights to train",
                expected=f"at most {most}, for a resolution of {resolution}",
                got=self.size,
                do="Train adapters (lora), or plan for a finer resolution.",
            )

    def _alone(self, record: TokenisedRecord) -> "Tensor":
        """Return the gradient of one record, computed by torch itself, (size,) float32."""
        import torch

        (loss,) = self._losses([record])
        grads = torch.autograd.grad(loss, self.weights, materialize_grads=True)
        return torch.cat([grad.flatten() for grad in grads])

    def _hooked(self) -> Any:
        """Install hooks that compute per-record gradients. Check the hooks on two public records, then return them."""
        import torch
        from opacus.grad_sample import GradSampleHooks

        first, last = self.causal.prefixes[0], self.causal.prefixes[-1]
        public = [TokenisedRecord(first + first, len(first)), TokenisedRecord(last + last[:1], len(last))]
        alone = torch.stack([self._alone(record) for record in public])
        try:
            hooks = GradSampleHooks(self._model, loss_reduction="sum")
            apart = _norms(self.gradients(public) - alone) / _norms(alone)
        except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
            raise self._unfit() from error
        if not (apart < _TOLERANCE).all():
            raise self._unfit()
        return hooks

    def _unfit(self) -> ConfigError:
        return ConfigError(
            "the model to fine-tune",
            expected="one whose gradients of single records opacus can compute",
            got=type(self.causal.model).__name__,
            do="Set micro_batch to 1 in this party's own file.",
        )


def train(
    tuner: Tuner,
    spec: FineTunedSpec,
    records: EmbeddedRecords,
    *,
    rate: float,
    scale: float,
    optimizer: Callable[[Iterable[Any], float], Any] | None = None,
) -> Causal:
    """Train a model by DP-SGD and return it.

    Args:
        tuner: The model; it must not be used again.
        spec: The planned specification.
        records: This party's records, at most `max_records` of each owner.
        rate: Probability that a unit takes part in a step.
        scale: Scale of the noise that is added to each step's sum, in integer units, in which C is 0.99 B; 0 for no
            noise.
        optimizer: Function that makes a torch optimizer from weights and a learning rate; None for Adam.
    """
    import torch

    make = optimizer or (lambda weights, learning_rate: torch.optim.Adam(weights, lr=learning_rate))
    steering = make(tuner.weights, spec.learning_rate)
    read = functools.cache(tuner.causal.read)
    unit = spec.clip / (ROOM * spec.resolution)
    for _ in range(spec.steps):
        sample = records.sampled(rate, secure_bytes(32)) if rate < 1 else records
        batch = [read(label, text) for label, text in zip(sample.labels.tolist(), sample.texts, strict=True)]
        total = tuner.clipped_sum(batch, clip=spec.clip)
        if scale:
            noise = discrete_gaussian(scale, tuner.size, secure_bytes(32))
            total += torch.from_numpy(noise).to(total.device)
        tuner.update(total * (unit / spec.batch), steering)
    return tuner.tuned()


def _adapted(model: Any, rank: int) -> Any:
    """Return the model with LoRA adapters on all linear layers except the last (Hu et al. 2021)."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    with own_randomness(model.device):
        return get_peft_model(model, settings)


def _norms(rows: "Tensor") -> "Tensor":
    norms: Tensor = rows.double().norm(dim=1)
    return norms


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the libraries' warnings about each other, on hooks at inputs without a gradient and on deprecated names."""
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield
